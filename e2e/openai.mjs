// Drives a running server with OpenAI's JavaScript client: ANTIPHASE_URL=http://127.0.0.1:8080 ANTIPHASE_API_KEY=… node openai.mjs
import assert from "node:assert/strict";
import OpenAI from "openai";

const url = process.env.ANTIPHASE_URL;
const apiKey = process.env.ANTIPHASE_API_KEY;
const client = new OpenAI({ baseURL: url + "/v1", apiKey, maxRetries: 0 });
const model = (await client.models.list()).data[0].id;
const messages = [{ role: "user", content: "The cat" }];

const cases = {
  async models() {
    assert.equal((await client.models.retrieve(model)).id, model);
  },
  async chat() {
    const body = { model, messages, max_completion_tokens: 10, seed: 3, logprobs: true, top_logprobs: 2 };
    const a = await client.chat.completions.create(body);
    assert.equal(a.object, "chat.completion");
    assert.equal(a.choices[0].message.role, "assistant");
    assert.equal(a.usage.total_tokens, a.usage.prompt_tokens + a.usage.completion_tokens);
    assert.equal(a.choices[0].logprobs.content.length, a.usage.completion_tokens);
    assert.equal(a.choices[0].logprobs.content[0].top_logprobs.length, 2);
    const b = await client.chat.completions.create(body);
    assert.equal(a.choices[0].message.content, b.choices[0].message.content);
    assert.deepEqual(a.choices[0].logprobs, b.choices[0].logprobs);
  },
  async stream() {
    const body = { model, messages, max_tokens: 10, seed: 4 };
    const whole = await client.chat.completions.create(body);
    const stream = await client.chat.completions.create({ ...body, stream: true, stream_options: { include_usage: true } });
    let text = "", reason, usage, role;
    for await (const c of stream) {
      role ??= c.choices[0]?.delta.role;
      text += c.choices[0]?.delta.content ?? "";
      reason = c.choices[0]?.finish_reason ?? reason;
      usage = c.usage ?? usage;
    }
    assert.equal(role, "assistant");
    assert.equal(text, whole.choices[0].message.content);
    assert.equal(reason, whole.choices[0].finish_reason);
    assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
  },
  async helper() {
    const runner = client.chat.completions.stream({ model, messages, max_tokens: 8, seed: 4 });
    const final = await runner.finalChatCompletion();
    assert.equal(final.choices[0].message.role, "assistant");
  },
  async choices() {
    const r = await client.chat.completions.create({ model, messages, n: 3, max_tokens: 6, temperature: 1.5 });
    assert.deepEqual(r.choices.map((c) => c.index), [0, 1, 2]);
  },
  async completions() {
    for (const prompt of ["The", ["The", "A"], [84, 104], [[84, 104], [65]]]) {
      const r = await client.completions.create({ model, prompt, max_tokens: 3, echo: true, logprobs: 1, temperature: 0 });
      for (const c of r.choices) {
        const n = c.logprobs.tokens.length;
        assert.equal(c.logprobs.token_logprobs.length, n);
        assert.equal(c.logprobs.text_offset.length, n);
        assert.equal(c.logprobs.token_logprobs[0], null);
      }
    }
  },
  async stop() {
    const whole = (await client.completions.create({ model, prompt: "The", max_tokens: 8, temperature: 0 })).choices[0].text;
    const stop = whole[2];
    const cut = (await client.completions.create({ model, prompt: "The", max_tokens: 8, temperature: 0, stop })).choices[0];
    assert.equal(cut.text, whole.slice(0, whole.indexOf(stop)));
    assert.equal(cut.finish_reason, "stop");
  },
  async embeddings() {
    const r = await client.embeddings.create({ model, input: ["a", "b"] }); // the client asks for base64 by itself
    assert.equal(r.data.length, 2);
    assert.ok(Math.abs(r.data[0].embedding.reduce((s, x) => s + x * x, 0) - 1) < 1e-3);
  },
  async schema() {
    const schema = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"], additionalProperties: false };
    const r = await client.chat.completions.create({ model, messages, max_tokens: 30, response_format: { type: "json_schema", json_schema: { name: "x", strict: true, schema } } });
    assert.equal(typeof JSON.parse(r.choices[0].message.content).ok, "boolean");
  },
  async errors() {
    const bad = new OpenAI({ baseURL: url + "/v1", apiKey: "wrong-wrong", maxRetries: 0 });
    await assert.rejects(bad.models.list(), OpenAI.AuthenticationError);
    await assert.rejects(client.chat.completions.create({ model: "other", messages }), OpenAI.NotFoundError);
    await assert.rejects(client.chat.completions.create({ model, messages, temperature: -1 }), (e) => e instanceof OpenAI.BadRequestError && e.param === "temperature");
    await assert.rejects(client.completions.create({ model, prompt: "x".repeat(5000) }), (e) => e.code === "context_length_exceeded");
  },
  async cancel() {
    const stream = await client.chat.completions.create({ model, messages, max_tokens: 40, stream: true });
    for await (const _ of stream) break; // aborts the request
    for (let i = 0; ; i++) {
      const text = await (await fetch(url + "/metrics", { headers: { Authorization: "Bearer " + apiKey } })).text();
      if (/antiphase_num_requests_running\{[^}]*\} 0\b/.test(text)) break;
      assert.ok(i < 200, "still running");
      await new Promise((r) => setTimeout(r, 20));
    }
  },
};

for (const [name, run] of Object.entries(cases)) {
  await run();
  console.log("ok", name);
}
