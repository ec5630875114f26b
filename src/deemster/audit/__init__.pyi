from deemster.audit.suite_audits import dataset as dataset
from deemster.audit.suite_audits import gate as gate
from deemster.audit.suite_audits import judge as judge
from deemster.audit.suite_audits import metrics as metrics
