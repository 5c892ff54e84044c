"""Named instances, and where their numbers come from."""

from restive.measure.zoo import load as load
from restive.measure.zoo import names as names
from restive.measure.zoo import random_controlled as random_controlled
from restive.measure.zoo import random_dirichlet as random_dirichlet
from restive.measure.zoo import random_near_deterministic as random_near_deterministic
from restive.measure.zoo import random_sticky as random_sticky
from restive.measure.zoo.instance import Instance as Instance
from restive.measure.zoo.outreach import cohort as cohort
from restive.measure.zoo.outreach import collapsing as collapsing
from restive.measure.zoo.outreach import qian_pair as qian_pair
from restive.measure.zoo.outreach import two_types as two_types
