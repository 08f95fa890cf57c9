"""Rules that balance the tasks' gradients or losses, one file per method."""

from lorpman.rules.auto_lambda import AutoLambda
from lorpman.rules.balancer import Balancer, Row, Weighting
from lorpman.rules.cagrad import CAGrad
from lorpman.rules.dwa import DynamicWeightAverage
from lorpman.rules.epo import Epo
from lorpman.rules.from_torchjd import TorchJD
from lorpman.rules.gmooar import GMOOAR
from lorpman.rules.graddrop import GradDrop
from lorpman.rules.imtl import IMTL, ImpartialLosses
from lorpman.rules.mgda import MGDA, FeatureMGDA
from lorpman.rules.moo_svgd import MOOSVGD
from lorpman.rules.nash_mtl import NashMTL
from lorpman.rules.pcgrad import PCGrad
from lorpman.rules.pmtl import PMTL
from lorpman.rules.png import PNG
from lorpman.rules.rlw import RandomWeighting
from lorpman.rules.rotograd import RotoGrad
from lorpman.rules.uw import UncertaintyWeighting

__all__ = [
    "GMOOAR",
    "IMTL",
    "MGDA",
    "MOOSVGD",
    "PMTL",
    "PNG",
    "AutoLambda",
    "Balancer",
    "CAGrad",
    "DynamicWeightAverage",
    "Epo",
    "FeatureMGDA",
    "GradDrop",
    "ImpartialLosses",
    "NashMTL",
    "PCGrad",
    "RandomWeighting",
    "RotoGrad",
    "Row",
    "TorchJD",
    "UncertaintyWeighting",
    "Weighting",
]
