// A provider of promptfoo that answers after some time and writes which answers are finished; see bench/resume.py.
const { appendFileSync } = require("node:fs");

module.exports = class {
  id() {
    return "slow";
  }

  async callApi(_prompt, { vars }) {
    await new Promise((resolve) => setTimeout(resolve, 1000 * vars.seconds));
    appendFileSync(process.env.FINISHED, `${vars.id}\n`);
    return { output: vars.output };
  }
};
