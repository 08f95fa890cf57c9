"""The studies: what is measured beside the table, in one place."""

from lorpman.lab.bench.compile_and_bf16 import switches
from lorpman.lab.bench.growth import growth
from lorpman.lab.bench.rivals import rivals
from lorpman.lab.bench.study import Study

STUDIES = (
    Study("rivals", "a step and an epoch of every continuous method against plain", rivals),
    Study("growth", "time and memory of a step against m, r and b", growth),
    Study("switches", "a step with torch.compile and with bfloat16 against one without", switches),
)
