// Writes the types of the API and of the websocket's frames, and the fields of forms, from their descriptions;
// `--check` only compares.
import { readFile, writeFile } from 'node:fs/promises';
import openapiTS, { astToString } from 'openapi-typescript';
import { fieldsText } from './generate-fields.mjs';

const docs = new URL('../../docs/', import.meta.url);
const target = new URL('../src/api/', import.meta.url);

const read = async (name) => JSON.parse(await readFile(new URL(name, docs), 'utf8'));

/** AsyncAPI's schemas are JSON Schemas, so OpenAPI's generator reads them too. */
const asOpenApi = ({ info, components }) => ({
  openapi: '3.1.0',
  info,
  paths: {},
  components: { schemas: components.schemas },
});

const typesOf = async (description) => astToString(await openapiTS(description, { defaultNonNullable: false }));

const made = [
  ['rest.gen.ts', await typesOf(await read('openapi.json'))],
  ['frames.gen.ts', await typesOf(asOpenApi(await read('asyncapi.json')))],
  ['fields.gen.ts', fieldsText(await read('join-file.schema.json'))],
];

let drifted = false;
for (const [name, content] of made) {
  const text = `// Made by npm run gen:api; not to be edited.\n${content}`;
  const file = new URL(name, target);
  if (process.argv.includes('--check')) {
    const kept = await readFile(file, 'utf8').catch(() => '');
    if (kept !== text) {
      drifted = true;
      console.error(`src/api/${name} is not what docs/ says; run npm run gen:api`);
    }
  } else {
    await writeFile(file, text);
  }
}
process.exit(drifted ? 1 : 0);
