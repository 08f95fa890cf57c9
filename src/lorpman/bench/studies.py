"""The studies: what is measured beside the table, in one place."""

from lorpman.bench.growth import growth
from lorpman.bench.rivals import rivals
from lorpman.bench.study import Study
from lorpman.bench.switches import switches

STUDIES = (
    Study("rivals", "a step and an epoch of every continuous method against plain", rivals),
    Study("growth", "time and memory of a step against m, r and b", growth),
    Study("switches", "a step with torch.compile and with bfloat16 against one without", switches),
)
