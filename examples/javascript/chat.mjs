// npm install openai && node chat.mjs
import OpenAI from "openai";

const client = new OpenAI({ baseURL: "http://127.0.0.1:8080/v1", apiKey: process.env.ANTIPHASE_API_KEY ?? "none" });
const model = (await client.models.list()).data[0].id;
const stream = await client.chat.completions.create({ model, messages: [{ role: "user", content: "Once upon a time" }], max_tokens: 64, stream: true });
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? "");
console.log();
