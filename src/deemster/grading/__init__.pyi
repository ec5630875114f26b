from deemster.grading.improvement_report import Improvement as Improvement
