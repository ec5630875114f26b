// A provider that answers from a table, with usage, so that runs are the same everywhere.
const ANSWERS = { 'capital of France': 'Paris', 'capital of Italy': 'The capital of Italy is Rome.', 'capital of Peru': 'Quito', 'two plus two': '{"answer": 4}' };
module.exports = class {
  constructor(options) { this.options = options; }
  id() { return this.options.id || 'table'; }
  async callApi(prompt) {
    if (prompt.includes('broken')) { return { error: 'the model is overloaded' }; }
    const key = Object.keys(ANSWERS).find((each) => prompt.includes(each));
    let output = ANSWERS[key] || 'I do not know.';
    if ((this.options.config || {}).loud) { output = output.toUpperCase(); }
    return { output, tokenUsage: { prompt: 12, completion: 5, total: 17 }, cost: 0.0001, cached: false };
  }
};
