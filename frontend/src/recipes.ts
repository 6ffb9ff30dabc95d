/** Each action of the dashboard as a shell command, a command of streamjoin, and Python. */
import { queryClient } from './api/queryClient';
import type { RejectedFilter } from './api/queries';
import type { Draft, Job, JobChange, Me, QueryIn, Role, UserChange } from './api/types';
import { baseUrl } from './env';

export interface Recipe {
  curl: string;
  cli: string;
  python: string;
}

type Json = object;

/** A word of a POSIX shell. */
export const shellWord = (text: string): string =>
  /^[\w./:@=+%-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** A JSON value as Python writes it. */
export function pythonLiteral(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(', ')}]`;
  if (typeof value === 'object') {
    return `{${Object.entries(value)
      .map(([name, one]) => `${JSON.stringify(name)}: ${pythonLiteral(one)}`)
      .join(', ')}}`;
  }
  return JSON.stringify(value);
}

const keywords = (values: Json): string =>
  Object.entries(values)
    .map(([name, value]) => `${name === 'from' ? 'from_' : name}=${pythonLiteral(value)}`)
    .join(', ');

const host = baseUrl.href.replace(/\/$/, '');

/** Where people sign in, programs show a key; the client and the command line find it in the environment themselves. */
const withKey = (command: string): string =>
  queryClient.getQueryData<Me>(['me'])?.id
    ? command.replace(/^curl \S+/, '$& -H "Authorization: Bearer $STREAMJOIN_API_KEY"')
    : command;

function curl(method: string, path: string, body?: Json, ...more: string[]): string {
  const words = ['curl -sS'];
  if (method !== 'GET') words.push(`-X ${method}`);
  words.push(...more);
  if (body !== undefined) words.push("-H 'Content-Type: application/json'", `-d ${shellWord(JSON.stringify(body))}`);
  words.push(shellWord(`${host}/api/v1/${path}`));
  return withKey(words.join(' '));
}

const cli = (...words: string[]): string =>
  `STREAMJOIN_HOST=${shellWord(host)} streamjoin ${words.map(shellWord).join(' ')}`;

/** A command that reads a file: JSON is YAML too, so the body itself can be the file. */
const cliFromFile = (body: Json, ...words: string[]): string => cliFromText(JSON.stringify(body, null, 2), ...words);

/** No line of JSON is the word that ends it. */
const cliFromText = (text: string, ...words: string[]): string =>
  `${cli(...words, '-f', '-')} <<'JSON'\n${text}\nJSON`;

const python = (call: string): string =>
  `from streamjoin.client import Client\n\nwith Client(${JSON.stringify(host)}) as platform:\n    ${call}\n`;

const path = (...parts: string[]): string => parts.map(encodeURIComponent).join('/');

export type JobAction = 'start' | 'stop' | 'restart';

export const jobAction = (job: string, action: JobAction): Recipe => ({
  curl: curl('POST', path('jobs', job, action)),
  cli: cli('jobs', action, job),
  python: python(`print(platform.jobs.${action}(${JSON.stringify(job)})["phase"])`),
});

export const showJob = (job: string): Recipe => ({
  curl: curl('GET', path('jobs', job)),
  cli: cli('jobs', 'get', job),
  python: python(`print(platform.jobs.get(${JSON.stringify(job)}))`),
});

export const rescaleJob = (job: string, slots: number): Recipe => ({
  curl: curl('POST', path('jobs', job, 'rescale'), { slots }),
  cli: cli('jobs', 'rescale', job, String(slots)),
  python: python(`platform.jobs.rescale(${JSON.stringify(job)}, ${String(slots)})`),
});

export const deleteJob = (job: string): Recipe => ({
  curl: curl('DELETE', path('jobs', job)),
  cli: cli('jobs', 'delete', job),
  python: python(`platform.jobs.delete(${JSON.stringify(job)})`),
});

/** A change of one version of a job; another version is not overwritten. */
export const changeJob = (job: string, change: JobChange, version: number): Recipe => ({
  curl: curl('PATCH', path('jobs', job), change, `-H 'If-Match: "${String(version)}"'`),
  cli: cliFromFile(
    change,
    'jobs',
    'update',
    job,
    '--version',
    String(version),
    ...(change.start_anew ? ['--yes'] : []),
  ),
  python: python(
    `print(platform.jobs.change(${JSON.stringify(job)}, ${keywords({ version, ...change })})["version"])`,
  ),
});

/** What a change would do. */
export const diffJob = (job: string, change: JobChange): Recipe => ({
  curl: curl('POST', path('jobs', job, 'diff'), change),
  cli: cliFromFile(change, 'jobs', 'update', job, '--dry-run'),
  python: python(`print(platform.jobs.diff(${JSON.stringify(job)}, ${keywords(change)}))`),
});

export const jobRevisions = (job: string): Recipe => request('GET', path('jobs', job, 'revisions'));

/** The end of a log; the command line can follow it. */
export const jobLog = (job: string, which: 'driver' | 'spark', isFollowed: boolean): Recipe => ({
  curl: curl('GET', `${path('jobs', job, 'logs')}?which=${which}`),
  cli: cli('jobs', 'logs', job, '--which', which, ...(isFollowed ? ['--follow'] : [])),
  python: python(`print(platform.jobs.logs(${JSON.stringify(job)}, which="${which}"))`),
});

/** Rows that are missing from a job's results. */
export const rejectedRows = (job: string, filter: RejectedFilter): Recipe => {
  const chosen = Object.entries(filter).filter((one): one is [string, string] => one[1] !== undefined);
  const query = new URLSearchParams(chosen).toString();
  const options = keywords(Object.fromEntries(chosen));
  return {
    curl: curl('GET', `${path('jobs', job, 'rejected')}${query && `?${query}`}`),
    cli: cli('jobs', 'rejected', job, '--rows', ...chosen.map(([name, value]) => `--${name}=${value}`)),
    python: python(
      `for row in platform.jobs.rejected(${JSON.stringify(job)}${options && `, ${options}`}):\n        print(row)`,
    ),
  };
};

export const createJob = (name: string, draft: Draft & Pick<Job, 'queries'>, start: boolean): Recipe => {
  const { query, ...rest } = draft;
  const body = { name, ...draft, start };
  const options = keywords({ ...rest, start });
  return {
    curl: curl('POST', 'jobs', body),
    cli: cliFromFile({ name, ...draft }, 'jobs', 'create', ...(start ? ['--start'] : [])),
    python: python(`job = platform.jobs.create(${JSON.stringify(name)}, ${JSON.stringify(query)}, ${options})`),
  };
};

export const explainDraft = (draft: Draft): Recipe => {
  const { query, ...rest } = draft;
  const more = Object.keys(rest).length === 0 ? '' : `, ${keywords(rest)}`;
  return {
    curl: curl('POST', 'jobs/explain', draft),
    cli: cliFromFile(draft, 'jobs', 'explain'),
    python: python(`print(platform.jobs.explain(${JSON.stringify(query)}${more})["text"])`),
  };
};

export const previewDraft = (draft: Draft): Recipe => {
  const { query, ...rest } = draft;
  const more = Object.keys(rest).length === 0 ? '' : `, ${keywords(rest)}`;
  return {
    curl: curl('POST', 'jobs/preview', draft),
    cli: cliFromFile(draft, 'jobs', 'preview'),
    python: python(`print(platform.jobs.preview(${JSON.stringify(query)}${more})["text"])`),
  };
};

export const startDemo = (demo: string): Recipe => request('POST', path('demos', demo));

export const removeDemo = (demo: string): Recipe => request('DELETE', path('demos', demo));

export const sampleStream = (stream: string): Recipe => ({
  curl: curl('POST', path('streams', stream, 'sample')),
  cli: cli('streams', 'sample', stream),
  python: python(`print(platform.streams.sample(${JSON.stringify(stream)})["rows"])`),
});

/** Secrets are nothing for a clipboard or a shell's history: words stand for them. */
const masked = (secrets: Json): Json =>
  Object.fromEntries(Object.keys(secrets).map((name) => [name, `THE ${name.toUpperCase()}`]));

/** What goes with a stream's entry, if it has any; and the same as arguments of Python. */
function secretsPart(secrets: Json | undefined): [body: Json, more: string] {
  if (secrets === undefined) return [{}, ''];
  const shown = masked(secrets);
  return [{ secrets: shown }, `, secrets=${pythonLiteral(shown)}`];
}

export const createStream = (name: string, spec: Json, secrets?: Json): Recipe => {
  const [part, more] = secretsPart(secrets);
  return {
    curl: curl('POST', 'streams', { name, spec, ...part }),
    cli: cliFromFile(secrets === undefined ? spec : { spec, ...part }, 'streams', 'create', name),
    python: python(`platform.streams.create(${JSON.stringify(name)}, ${pythonLiteral(spec)}${more})`),
  };
};

export const createRelation = (name: string, spec: Json, secrets?: Json): Recipe => {
  const [part, more] = secretsPart(secrets);
  return {
    curl: curl('POST', 'relations', { name, spec, ...part }),
    cli: cliFromFile(secrets === undefined ? spec : { spec, ...part }, 'relations', 'create', name),
    python: python(`platform.relations.create(${JSON.stringify(name)}, ${pythonLiteral(spec)}${more})`),
  };
};

export const sampleRelation = (relation: string): Recipe => ({
  curl: curl('POST', path('relations', relation, 'sample')),
  cli: cli('relations', 'sample', relation),
  python: python(`print(platform.relations.sample(${JSON.stringify(relation)})["rows"])`),
});

export const refreshRelation = (relation: string): Recipe => ({
  curl: curl('POST', path('relations', relation, 'refresh')),
  cli: cli('relations', 'refresh', relation),
  python: python(`print(platform.relations.refresh(${JSON.stringify(relation)}))`),
});

export const deleteRelation = (relation: string): Recipe => ({
  curl: curl('DELETE', path('relations', relation)),
  cli: cli('relations', 'delete', relation),
  python: python(`platform.relations.delete(${JSON.stringify(relation)})`),
});

/** A file of one's own, which the platform keeps. */
export const uploadFile = (file: string): Recipe => ({
  curl: withKey(
    `curl -sS -H 'Content-Type: application/octet-stream' --data-binary ${shellWord(`@${file}`)} ` +
      shellWord(`${host}/api/v1/uploads?name=${encodeURIComponent(file)}`),
  ),
  cli: cli('uploads', 'add', file),
  python: python(
    `print(platform.uploads.add(${JSON.stringify(file)}, open(${JSON.stringify(file)}, "rb").read())["path"])`,
  ),
});

/** Files that streams may read. */
export const listFiles = (folder: string | null): Recipe =>
  ({
    ...request('GET', folder === null ? 'files' : `files?path=${encodeURIComponent(folder)}`),
    cli: cli('files', ...(folder === null ? [] : [folder])),
    python: python(`print(*platform.files(${folder === null ? '' : JSON.stringify(folder)}), sep="\\n")`),
  });

export const testStream = (spec: Json, secrets?: Json): Recipe => {
  const [part, more] = secretsPart(secrets);
  return {
    curl: curl('POST', 'streams/test', { spec, ...part }),
    cli: cliFromFile(secrets === undefined ? spec : { spec, ...part }, 'streams', 'test'),
    python: python(`print(platform.streams.test(${pythonLiteral(spec)}${more})["rows"])`),
  };
};

/** Change a stream or a relation, of the version that is told. */
const change = (what: 'streams' | 'relations', name: string, version: number, spec: Json, secrets?: Json): Recipe => {
  const [part, more] = secretsPart(secrets);
  const options = `spec=${pythonLiteral(spec)}${more}, version=${String(version)}`;
  return {
    curl: curl('PATCH', path(what, name), { spec, ...part }, `-H 'If-Match: "${String(version)}"'`),
    cli: cliFromFile(
      secrets === undefined ? spec : { spec, ...part },
      what,
      'update',
      name,
      '--version',
      String(version),
    ),
    python: python(`platform.${what}.change(${JSON.stringify(name)}, ${options})`),
  };
};

export const changeStream = (stream: string, version: number, spec: Json, secrets?: Json): Recipe =>
  change('streams', stream, version, spec, secrets);

export const changeRelation = (relation: string, version: number, spec: Json, secrets?: Json): Recipe =>
  change('relations', relation, version, spec, secrets);

export const deleteStream = (stream: string): Recipe => ({
  curl: curl('DELETE', path('streams', stream)),
  cli: cli('streams', 'delete', stream),
  python: python(`platform.streams.delete(${JSON.stringify(stream)})`),
});

/**
 * Post rows into a stream.
 *
 * @param lines rows as they were typed: read and written again, large numbers would lose digits.
 * @param batch a name of these rows, or '': posted again under it, they are kept once.
 */
export const pushRows = (stream: string, lines: string[], batch: string): Recipe => {
  const text = lines.join('\n');
  const where = `${path('streams', stream, 'rows')}${batch === '' ? '' : `?batch_id=${encodeURIComponent(batch)}`}`;
  const more = batch === '' ? '' : `, batch_id=${JSON.stringify(batch)}`;
  return {
    curl: curl('POST', where, undefined, "-H 'Content-Type: application/x-ndjson'", `--data-binary ${shellWord(text)}`),
    cli: cliFromText(text, 'streams', 'push', stream, ...(batch === '' ? [] : [`--batch-id=${batch}`])),
    python: python(`print(platform.streams.push(${JSON.stringify(stream)}, ${pythonLiteral(lines)}${more}))`),
  };
};

/** Follow results, with a condition or all of them. */
export const tailJob = (job: string, where: string | null): Recipe => {
  const query = where === null ? '' : `?where=${encodeURIComponent(where)}`;
  const more = where === null ? '' : `, where=${JSON.stringify(where)}`;
  return {
    curl: withKey(`curl -sSN ${shellWord(`${host}/api/v1/${path('jobs', job, 'stream')}${query}`)}`),
    cli: cli('watch', job, ...(where === null ? [] : [`--where=${where}`])),
    python: python(
      `for news in platform.tail(${JSON.stringify(job)}${more}):\n        print(news.snapshot, len(news.rows))`,
    ),
  };
};

const ASK_OPTIONS = [
  'from',
  'to',
  'key',
  'key_from',
  'key_to',
  'where',
  'select',
  'aggregate',
  'by',
  'after',
  'upto',
  'as_of',
  'history',
  'limit',
  'cursor',
  'timeout_s',
] as const;

/** A one-time question. */
export const askJob = (question: QueryIn): Recipe => {
  const { job, format } = question;
  const asked = ASK_OPTIONS.flatMap((name) =>
    question[name] == null || (name === 'history' && !question.history) ? [] : [[name, question[name]] as const],
  );
  const options = asked.map(([name, value]) => {
    const option = `--${name.replace(/_s$/, '').replace('_', '-')}`;
    return name === 'history' ? option : `${option}=${String(value)}`;
  });
  const more = asked.length === 0 ? '' : `, ${keywords(Object.fromEntries(asked))}`;
  return {
    curl: curl('POST', 'queries', question),
    cli: cli('ask', job, ...options, ...(format === undefined || format === 'json' ? [] : ['-o', format])),
    python: python(`print(platform.query(${JSON.stringify(job)}${more}).table)`),
  };
};

/** What neither the command line nor the client has a word of its own for: a request as it is. */
const request = (method: string, where: string, body?: Json): Recipe => {
  const more = body === undefined ? '' : `, json=${pythonLiteral(body)}`;
  return {
    curl: curl(method, where, body),
    cli: body === undefined ? cli('call', method, where) : cliFromFile(body, 'call', method, where),
    python: python(`print(platform.call(${JSON.stringify(method)}, ${JSON.stringify(`/api/v1/${where}`)}${more}))`),
  };
};

export const keepQuestion = (name: string, question: QueryIn): Recipe =>
  request('POST', 'saved-queries', { name, question });

export const forgetQuestion = (name: string): Recipe => request('DELETE', path('saved-queries', name));

/** A password is nothing for a clipboard or a shell's history: a word stands for it. */
export const changePassword = (): Recipe =>
  request('PUT', 'users/me/password', { old: 'OLD PASSWORD', new: 'NEW PASSWORD' });

export const createUser = (name: string, role: Role): Recipe =>
  request('POST', 'users', { name, role, password: 'A PASSWORD' });

export const changeUser = (name: string, change: UserChange): Recipe =>
  request(
    'PATCH',
    path('users', name),
    change.password === undefined ? change : { ...change, password: 'A NEW PASSWORD' },
  );

export const deleteUser = (name: string): Recipe => request('DELETE', path('users', name));

export const createKey = (name: string, role: Role, endsWithLogin: boolean): Recipe =>
  request('POST', 'api-keys', { name, role, ends_with_login: endsWithLogin });

export const revokeKey = (id: string): Recipe => request('DELETE', path('api-keys', id));
