from deemster.cli.main import app as app
from deemster.cli.main import main as main
