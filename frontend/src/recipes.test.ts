import { expect, test } from 'vitest';
import { queryClient } from './api/queryClient';
import {
  askJob,
  changeJob,
  changeRelation,
  changeStream,
  changeUser,
  createJob,
  createStream,
  diffJob,
  jobAction,
  jobLog,
  keepQuestion,
  previewDraft,
  pushRows,
  pythonLiteral,
  rejectedRows,
  removeDemo,
  shellWord,
  startDemo,
  tailJob,
  uploadFile,
} from './recipes';

test('words of a shell are quoted where they must be', () => {
  expect(shellWord('job_01')).toBe('job_01');
  expect(shellWord("it's")).toBe(`'it'\\''s'`);
  expect(shellWord('$(rm)')).toBe(`'$(rm)'`);
});

test('values are written as Python writes them', () => {
  expect(pythonLiteral({ a: [true, null, 1.5, 'x"y'], b: {} })).toBe('{"a": [True, None, 1.5, "x\\"y"], "b": {}}');
});

test('a job with blanks in its name is addressed by curl, the command line and Python', () => {
  const recipe = jobAction('demo auctions', 'stop');
  expect(recipe.curl).toBe('curl -sS -X POST http://localhost:3000/api/v1/jobs/demo%20auctions/stop');
  expect(recipe.cli).toBe("STREAMJOIN_HOST=http://localhost:3000 streamjoin jobs stop 'demo auctions'");
  expect(recipe.python).toContain(
    'with Client("http://localhost:3000") as platform:\n    print(platform.jobs.stop("demo auctions")',
  );
});

test('a draft becomes a job file on standard input', () => {
  const { curl, cli, python } = createJob('wins', { query: 'SELECT 1', run: { slots: 2 } }, true);
  expect(curl).toContain(`-d '{"name":"wins","query":"SELECT 1","run":{"slots":2},"start":true}'`);
  expect(cli).toContain('streamjoin jobs create --start -f - <<\'JSON\'\n{\n  "name": "wins"');
  expect(python).toContain('platform.jobs.create("wins", "SELECT 1", run={"slots": 2}, start=True)');
});

test('a preview is asked for with what the rows depend on', () => {
  const { curl, cli, python } = previewDraft({ query: 'SELECT 1', results: { select: ['a'] } });
  expect(curl).toContain(`-d '{"query":"SELECT 1","results":{"select":["a"]}}'`);
  expect(curl).toContain('/api/v1/jobs/preview');
  expect(cli).toContain('streamjoin jobs preview -f - <<\'JSON\'\n{\n  "query": "SELECT 1"');
  expect(python).toContain('print(platform.jobs.preview("SELECT 1", results={"select": ["a"]})["text"])');
});

test('a file is sent as it is, under its name', () => {
  const { curl, cli, python } = uploadFile('my orders.csv');
  expect(curl).toBe(
    "curl -sS -H 'Content-Type: application/octet-stream' --data-binary '@my orders.csv' " +
      'http://localhost:3000/api/v1/uploads?name=my%20orders.csv'.replace(/^.*$/, "'$&'"),
  );
  expect(cli).toContain("streamjoin uploads add 'my orders.csv'");
  expect(python).toContain('platform.uploads.add("my orders.csv", open("my orders.csv", "rb").read())["path"]');
});

test('questions and tails keep their conditions', () => {
  expect(askJob({ job: 'j', from: '2026-01-01', key: -5, where: 'x > 1', limit: 9, format: 'csv' }).cli).toContain(
    "streamjoin ask j --from=2026-01-01 --key=-5 '--where=x > 1' --limit=9 -o csv",
  );
  expect(askJob({ job: 'j', from: '2026-01-01' }).python).toContain('platform.query("j", from_="2026-01-01")');
  expect(tailJob('j', 'x > 1').curl).toContain('/jobs/j/stream?where=x%20%3E%201');
});

test('credentials of a stream are not copied: words stand for them', () => {
  const { curl, cli, python } = createStream('orders', { source: 'kafka' }, { 'sasl.password': 'hunter2' });
  for (const text of [curl, cli, python]) {
    expect(text).toContain('THE SASL.PASSWORD');
    expect(text).not.toContain('hunter2');
  }
});

test('a change of a stream names the version that it changes', () => {
  const { curl, python } = changeStream('orders', 3, { source: 'csv' });
  expect(curl).toContain(`-X PATCH -H 'If-Match: "3"' -H 'Content-Type: application/json'`);
  expect(python).toContain('platform.streams.change("orders", spec={"source": "csv"}, version=3)');
  const relation = changeRelation('rates', 2, { source: 'csv' });
  expect(relation.curl).toContain(`/relations/rates`);
  expect(relation.cli).toContain('relations update rates --version 2');
  expect(relation.python).toContain('platform.relations.change("rates", spec={"source": "csv"}, version=2)');
});

test('rows are posted as lines, and under their name where they have one', () => {
  const rows = [`{"id": 1.10, "name": "it's"}`, '{"id":12345678901234567890}'];
  expect(pushRows('orders', rows, '').curl).toContain(
    `--data-binary '{"id": 1.10, "name": "it'\\''s"}\n{"id":12345678901234567890}' http`,
  );
  expect(pushRows('orders', rows, 'a b').curl).toContain("/streams/orders/rows?batch_id=a%20b'");
  expect(pushRows('orders', rows, 'first').python).toContain(
    `push("orders", ["{\\"id\\": 1.10, \\"name\\": \\"it's\\"}", "{\\"id\\":12345678901234567890}"], batch_id="first")`,
  );
});

test('questions of all kinds are asked by the client as they are by curl', () => {
  const question = { job: 'j', aggregate: 'count', by: ['a', 'b'], timeout_s: 5, format: 'json' as const };
  expect(askJob(question).cli).toContain("streamjoin ask j --aggregate=count '--by=a,b' --timeout=5");
  expect(askJob(question).python).toContain('platform.query("j", aggregate="count", by=["a", "b"], timeout_s=5).table');
});

test('questions to groups that change, and those that go on, are copied in full', () => {
  const { cli, python } = askJob({ job: 'j', as_of: '41.0', history: true, cursor: 'c 1', format: 'json' });
  expect(cli).toContain("streamjoin ask j --as-of=41.0 --history '--cursor=c 1'");
  expect(python).toContain('platform.query("j", as_of="41.0", history=True, cursor="c 1").table');
  expect(askJob({ job: 'j', history: false, key: false, format: 'json' }).cli).toMatch(/ask j --key=false$/);
});

test('where people sign in, curl shows the key of the environment', () => {
  const command = "curl -sS -X POST 'http://localhost:3000/api/v1/jobs/j/stop'";
  expect(jobAction('j', 'stop').curl).not.toContain('Authorization');
  queryClient.setQueryData(['me'], { id: 'usr_1', name: 'vera', role: 'viewer', key_id: null });
  expect(jobAction('j', 'stop').curl.replaceAll("'", '')).toBe(
    command.replaceAll("'", '').replace('-sS', '-sS -H "Authorization: Bearer $STREAMJOIN_API_KEY"'),
  );
  expect(tailJob('j', null).curl).toContain('curl -sSN -H "Authorization: Bearer $STREAMJOIN_API_KEY" http');
  queryClient.clear();
});

test('passwords are not copied: words stand for them', () => {
  const { curl, python } = changeUser('vera', { password: 'hunter22' });
  expect(curl + python).not.toContain('hunter22');
  expect(python).toContain('json={"password": "A NEW PASSWORD"}');
});

test('a change names the version that it is of, and says what it does before', () => {
  const change = { run: { slots: 3 }, start_anew: true };
  const { curl, cli, python } = changeJob('demo auctions', change, 4);
  expect(curl).toBe(
    `curl -sS -X PATCH -H 'If-Match: "4"' -H 'Content-Type: application/json' ` +
      `-d '{"run":{"slots":3},"start_anew":true}' http://localhost:3000/api/v1/jobs/demo%20auctions`,
  );
  expect(cli).toContain("streamjoin jobs update 'demo auctions' --version 4 --yes -f - <<'JSON'\n{\n");
  expect(changeJob('j', { run: { slots: 3 } }, 4).cli).toContain("streamjoin jobs update j --version 4 -f - <<'JSON'");
  expect(diffJob('j', change).cli).toContain('streamjoin jobs update j --dry-run -f -');
  expect(python).toContain('platform.jobs.change("demo auctions", version=4, run={"slots": 3}, start_anew=True)');
  expect(diffJob('j', change).python).toContain('platform.jobs.diff("j", run={"slots": 3}, start_anew=True)');
});

test('a log is followed by the command line where it still grows', () => {
  expect(jobLog('j', 'spark', true).cli).toContain('streamjoin jobs logs j --which spark --follow');
  expect(jobLog('j', 'driver', false).cli).not.toContain('--follow');
  expect(jobLog('j', 'driver', false).curl).toContain('/jobs/j/logs?which=driver');
});

test('rejected rows are asked for with the same choice', () => {
  const { curl, cli, python } = rejectedRows("it's", { stream: 'a b', reason: 'late' });
  expect(curl).toContain("/jobs/it's/rejected?stream=a+b&reason=late".replace("'", `'\\''`));
  expect(cli).toContain(`streamjoin jobs rejected 'it'\\''s' --rows '--stream=a b' --reason=late`);
  expect(python).toContain(`platform.jobs.rejected("it's", stream="a b", reason="late")`);
  expect(rejectedRows('j', {}).curl).toMatch(/\/jobs\/j\/rejected$/);
});

test('what has no command of its own is a call', () => {
  expect(startDemo('auctions').cli).toBe('STREAMJOIN_HOST=http://localhost:3000 streamjoin call POST demos/auctions');
  expect(removeDemo('auctions').python).toContain('print(platform.call("DELETE", "/api/v1/demos/auctions"))');
  expect(keepQuestion('mine', { job: 'j' }).cli).toContain("streamjoin call POST saved-queries -f - <<'JSON'\n{\n");
});

test('rows are pushed one on each line', () => {
  const { cli } = pushRows('s', ['{"n":1}', '{"n":2}'], 'b 1');
  expect(cli).toContain(`streamjoin streams push s '--batch-id=b 1' -f - <<'JSON'\n{"n":1}\n{"n":2}\nJSON`);
});
