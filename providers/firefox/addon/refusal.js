// Refusal is an answer that says no: code is one that the provider knows, message is for people.
export class Refusal extends Error {
  constructor(code, message) { super(message); this.code = code; }
}
