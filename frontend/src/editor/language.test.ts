import { CompletionContext, type CompletionSource } from '@codemirror/autocomplete';
import { EditorState } from '@codemirror/state';
import { expect, test } from 'vitest';
import { joinLanguage } from './language';

async function offered(text: string): Promise<string[]> {
  const state = EditorState.create({ doc: text, extensions: [joinLanguage({ bids: ['id'], customers: ['id', 'name'] })] });
  const context = new CompletionContext(state, text.length, true);
  const sources = state.languageDataAt<CompletionSource>('autocomplete', text.length);
  const found = await Promise.all(sources.map(async (source) => source(context)));
  return found.flatMap((one) => one?.options.map(({ label }) => label) ?? []);
}

test('VERSION is offered, and within it the names of what is joined', async () => {
  expect(await offered('SELECT ONLINE VER')).toContain('VERSION');
  expect(await offered('SELECT ONLINE VERSION(cust')).toContain('customers');
  expect(await offered('SELECT ONLINE customers.')).toEqual(['id', 'name']);
});
