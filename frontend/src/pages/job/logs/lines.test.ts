import { expect, test } from 'vitest';
import { filtered, readLog, withGenerations, type Filter } from './lines';

const DRIVER = [
  '{"event": "There was an exception", "level": "error", "logger": "py4j", "timestamp": "2026-11-22T01:25:44.728912Z", "exception": "Traceback\\n  File x"}',
  '{"event": "failed: a string", "generation": 2, "level": "error", "logger": "streamjoin.driver", "timestamp": "2026-11-22T01:25:45.518319Z"}',
  '{"event": "a report was dropped", "generation": 2, "level": "warning", "logger": "streamjoin.driver", "timestamp": "2026-11-22T01:25:46Z"}',
  '',
].join('\n');

const SPARK = [
  'WARNING: Using incubator modules: jdk.incubator.vector',
  'Setting default log level to "WARN".',
  '2026-11-22T01:25:43,966 ERROR org.apache.spark.executor.Executor: Exception in task 0.0',
  'org.apache.spark.api.python.PythonException: Traceback (most recent call last):',
  '\tat scala.collection.Iterator',
  '2026-11-22T01:25:44,633 WARN org.apache.spark.scheduler.TaskSetManager: [batchId = 0] Task 0 failed',
].join('\n');

const ALL: Filter = { level: 'debug', generation: null, text: '' };

test('lines of the driver are read with all they say', () => {
  const [first, second, third] = readLog(DRIVER);
  expect(first).toMatchObject({ time: '01:25:44.728', level: 'error', generation: null, more: 'Traceback\n  File x' });
  expect(second).toMatchObject({ generation: 2, message: 'failed: a string', logger: 'streamjoin.driver', more: '' });
  expect(third?.level).toBe('warning');
});

test('what Java writes below a line belongs to it', () => {
  const lines = readLog(SPARK);
  expect(lines.map(({ time, level, message }) => [time, level, message])).toEqual([
    ['', 'warning', 'Using incubator modules: jdk.incubator.vector'],
    ['', 'info', 'Setting default log level to "WARN".'],
    ['01:25:43.966', 'error', 'Exception in task 0.0'],
    ['01:25:44.633', 'warning', '[batchId = 0] Task 0 failed'],
  ]);
  expect(lines[2]?.more.split('\n')).toHaveLength(2);
  expect(lines.map(({ raw }) => raw).join('\n')).toBe(SPARK);
});

test('entries of Spark say in which zone their time is, and those of earlier versions do not', () => {
  const lines = readLog(`${SPARK.replaceAll(/^(2026\S+)/gm, '$1Z')}\n\tat scala.collection.Iterator`);
  expect(lines.map(({ atMs }) => atMs)).toEqual([null, null, 1_795_310_743_966, 1_795_310_744_633]);
  expect(lines[3]?.more).toBe('\tat scala.collection.Iterator');
  expect(readLog(SPARK)[2]?.atMs).toBeNull();
});

test('a trace that begins below an entry of Spark does not leave it, and none belongs to a line of the driver', () => {
  const trace = 'Traceback (most recent call last):\n  File "x"\nValueError: no';
  expect(readLog(`${SPARK}\n${trace}`).at(-1)?.more).toBe(trace);
  expect(readLog(`${DRIVER}${trace}`).map(({ more }) => more.split('\n').length)).toEqual([2, 1, 1, 2]);
  expect(readLog(`${SPARK}\n${SPARK}`)).toHaveLength(8);
});

test('a line that was cut in the middle, and a program that died at its start, are shown as they are', () => {
  const lines = readLog('half of a line"}\nTraceback (most recent call last):\n  File "x"\nImportError: no\n');
  expect(lines.map(({ level, message, more }) => [level, message, more])).toEqual([
    ['info', 'half of a line"}', ''],
    ['error', 'Traceback (most recent call last):', '  File "x"\nImportError: no'],
  ]);
});

test('a line without a generation is of the one that ran then', () => {
  const began = [
    { generation: 1, atMs: Date.parse('2026-11-22T01:25:00Z') },
    { generation: 2, atMs: Date.parse('2026-11-22T01:25:30Z') },
    { generation: 3, atMs: Date.parse('2026-11-22T01:26:00Z') },
  ];
  expect(withGenerations(readLog(DRIVER), began).map(({ generation }) => generation)).toEqual([2, 2, 2]);
  expect(withGenerations(readLog(SPARK), began)[2]?.generation).toBeNull();
});

test('a filter keeps its level and worse, its generation, and a text anywhere in the entry', () => {
  const lines = readLog(DRIVER);
  expect(filtered(lines, ALL)).toHaveLength(3);
  expect(filtered(lines, { ...ALL, level: 'error' })).toHaveLength(2);
  expect(filtered(lines, { ...ALL, generation: 2 })).toHaveLength(2);
  expect(filtered(lines, { ...ALL, text: ' file X' })).toHaveLength(1);
  expect(filtered(lines, { ...ALL, text: 'streamjoin.driver' })).toHaveLength(2);
});
