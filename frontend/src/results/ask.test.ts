import { expect, test, vi } from 'vitest';
import { ask, exported } from './ask';

/** The question that the platform is sent, which answers with a text. */
async function sent(doing: () => Promise<unknown>, text: string, type: string): Promise<unknown> {
  const asked: Request[] = [];
  vi.stubGlobal('fetch', (request: Request) => {
    asked.push(request);
    return Promise.resolve(new Response(text, { headers: { 'Content-Type': type } }));
  });
  await doing();
  expect(asked).toHaveLength(1);
  return asked[0]?.json();
}

test('a page gets JSON, whatever format the question was kept with', async () => {
  const body = await sent(() => ask({ job: 'wins', limit: 5, format: 'csv' }), '{"rows":[]}', 'application/json');
  expect(body).toEqual({ job: 'wins', limit: 5, format: 'json' });
});

test('a file keeps to the limit of its question, and nothing else limits it', async () => {
  const export_ = (limit?: number) => () => exported({ job: 'wins', format: 'json', limit }, 'csv');
  expect(await sent(export_(100), '"a"\n', 'text/csv')).toEqual({ job: 'wins', limit: 100, format: 'csv' });
  expect(await sent(export_(), '"a"\n', 'text/csv')).toEqual({ job: 'wins', format: 'csv' });
});

test('a file says whether it is all of the answer', async () => {
  const given = async (text: string) => {
    vi.stubGlobal('fetch', () => Promise.resolve(new Response(text)));
    const { blob, cut } = await exported({ job: 'wins' }, 'csv');
    expect(await blob.text()).toBe(text);
    return cut;
  };
  expect(await given('"a"\n1\n')).toBeNull();
  const end = '{"rows_given": 1, "truncated": true, "stopped_by": "rows"}';
  expect(await given(`"a"\n1\n# cut off: ${end}\n`)).toEqual({ rows_given: 1, stopped_by: 'rows' });
});

test('what the platform refuses is its problem', async () => {
  const problem = { type: '', code: 'invalid', status: 422, title: 'No', detail: 'no such column' };
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify(problem), { status: 422 })));
  const refused = { code: 'invalid', message: 'no such column' };
  await expect(exported({ job: 'wins' }, 'arrow')).rejects.toMatchObject(refused);
});
