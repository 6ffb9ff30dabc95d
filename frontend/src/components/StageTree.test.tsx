import { MantineProvider } from '@mantine/core';
import { render, screen, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { quietAfter, reportOf } from '../api/figures';
import { decides, stagesOf } from '../api/stages';
import { StagesPanel } from '../pages/job/StagesPanel';
import { planOf } from '../pages/join/plan';
import { Stages } from '../pages/join/Stages';
import { kindInWords, stagesInWords } from './StageTree';

const FIRST = { stage: 1, inputs: [{ stream: 'orders' }, { stream: 'payments' }] };
const SECOND = { stage: 2, inputs: [{ stage: 1 }, { stream: 'refunds', stage: null }] };

const unit = (number: number, stage: number) => ({ unit: number, label: `${String(stage)}.R0`, stage, stored_rows: 40 });

const report = (stages: object[]) =>
  reportOf({
    at: '2026-01-01T00:00:00Z',
    span_s: 10,
    generation: 1,
    figures: {
      seconds: 2,
      results: 14,
      tuples: { orders: 200, payments: 100, refunds: 6 },
      stages,
      units: [unit(0, 1), unit(1, 1), unit(2, 2)],
    },
  });

const found = report([
  { ...FIRST, results: 90 },
  { ...SECOND, results: 14 },
]);

const shown = (element: React.ReactElement) => render(<MantineProvider env="test">{element}</MantineProvider>);

test('a running plan is a tree whose edges have the rates of the report', () => {
  shown(<StagesPanel report={found} isComing />);
  expect(screen.getByText('Stage 1 joins orders with payments; stage 2 joins stage 1 with refunds and gives the results.')).toBeDefined();
  const tree = within(screen.getByRole('region', { name: 'The plan as a tree of stages' }));
  expect(tree.getAllByRole('listitem').map((item) => item.textContent)).toEqual([
    // An item has what flows into it, its name, and what leaves it.
    'orders100/spayments50/sStage 12 units, 80 stored45/s',
    'orders100/s',
    'payments50/s',
    'refunds3/s',
  ]);
  expect(tree.getByText('7/s').nextElementSibling?.textContent).toBe('results');
});

test('only several inputs are led together: the edge of a single one goes straight into its stage', () => {
  const grouped = report([FIRST, { stage: 2, inputs: [{ stage: 1 }], kind: null }]);
  shown(<StagesPanel report={grouped} isComing />);
  const tree = within(screen.getByRole('region', { name: 'The plan as a tree of stages' }));
  const ofStage = (words: string) => tree.getByText(words).closest('div')?.previousElementSibling as HTMLElement;
  expect(ofStage('Stage 1').dataset.several).toBe('true');
  expect(ofStage('Stage 2').dataset.several).toBe('false');
});

test('a stage that decides on rows says what kind of join it is, and how many wait', () => {
  const left = report([
    { ...FIRST, results: 90, kind: 'LEFT', open_rows: 7 },
    { ...SECOND, results: 14, kind: 'INNER', open_rows: 0 },
  ]);
  shown(<StagesPanel report={left} isComing />);
  expect(screen.getByText('Stage 1 is orders LEFT JOIN payments; stage 2 joins stage 1 with refunds and gives the results.')).toBeDefined();
  const tree = within(screen.getByRole('region', { name: 'The plan as a tree of stages' }));
  expect(tree.getByText('LEFT JOIN').closest('div')?.textContent).toMatch(/^Stage 1 LEFT JOIN/);
  expect(tree.getByText('2 units, 80 stored, 7 wait')).toBeDefined();
  expect(tree.getByText('1 unit, 40 stored')).toBeDefined();
});

test('a stage that looks for the latest row says so, and decides on none by what comes later', () => {
  const found = stagesOf([{ ...FIRST, kind: 'ASOF LEFT' }, { ...SECOND, kind: 'INNER' }], () => ({}));
  expect(stagesInWords(found)).toBe(
    'Stage 1 is orders ASOF LEFT JOIN payments; stage 2 joins stage 1 with refunds and gives the results.',
  );
  expect(found.map(decides)).toEqual([false, false]);
  expect(found.slice(0, 1).map(kindInWords)).toEqual([
    'orders ASOF LEFT JOIN payments: a row of orders comes out with the latest row of payments, once the watermark of payments has passed it',
  ]);
});

test('where no input comes no rate is told', () => {
  shown(<StagesPanel report={found} isComing={false} />);
  expect(screen.queryByText(/\/s$/)).toBeNull();
  expect(screen.getByText('no input comes')).toBeDefined();
  expect(quietAfter(found, 1).stages.map(({ results }) => results)).toEqual([0, 0]);
});

test('two streams, and reports that tell of no stages, are drawn as before', () => {
  for (const stages of [[{ ...FIRST, results: 1 }], [], [{ stage: 1, results: 3 }, { stage: 2, results: 4 }]]) {
    const { container } = shown(<StagesPanel report={report(stages)} isComing />);
    expect(container.querySelector('section')).toBeNull();
  }
});

test('an explained plan has the operator, the condition and the index of each stage', () => {
  const of = (conditions: string[]) => ({ operator: 'hash routing', index: ['hash of a', 'hash of b'], conditions });
  const plan = planOf({
    plan: {
      sampled: { orders: { tuples_per_s: 1500 }, payments: { tuples_per_s: 20 }, refunds: { tuples_per_s: 3 } },
      stages: [
        { ...FIRST, ...of(['(orders.id = payments.order)', '(orders.x > 3)']) },
        { ...SECOND, ...of([]) },
      ],
    },
    text: '',
    columns: [],
  });
  shown(<Stages plan={plan} />);
  expect(screen.getByText('1.5K/s')).toBeDefined();
  expect(screen.getByText('where (orders.id = payments.order) AND (orders.x > 3)')).toBeDefined();
  expect(screen.getByText('every pair in the window')).toBeDefined();
  expect(screen.getAllByText('index: hash of a; hash of b')).toHaveLength(2);
  expect(screen.getAllByRole('term').map((term) => term.textContent)).toEqual(['Stage 1', 'Stage 2']);
});

test('a stage that makes groups says by what, and has one input', () => {
  const grouped = { stage: 2, inputs: [{ stage: 1 }], operator: '2 units', groups: 'orders.k, windows of 1 min' };
  const joined = { ...FIRST, operator: 'hash routing', index: ['hash of a', 'hash of b'], conditions: [], groups: null };
  const plan = planOf({ plan: { stages: [joined, grouped] }, text: '', columns: [] });
  shown(<Stages plan={plan} />);
  expect(screen.getByText('Stage 1 joins orders with payments; stage 2 makes groups of stage 1 and gives the results.')).toBeDefined();
  expect(screen.getByText(/^groups by orders\.k, windows of 1 min, given when/)).toBeDefined();
  expect(screen.getAllByText('every pair in the window')).toHaveLength(1);
  expect(screen.getAllByText(/^index: /)).toHaveLength(1);
});

test('rounds of a join of all streams follow each other, and groups may follow them', () => {
  const streams = ['a', 'b', 'c'].map((stream) => ({ stream }));
  const rounds = [
    { stage: 1, inputs: streams, kind: 'INNER' },
    { stage: 2, inputs: [{ stage: 1 }], kind: 'INNER' },
    { stage: 3, inputs: [{ stage: 2 }], kind: null },
  ];
  const words = 'Stage 1 joins a with b with c; stage 2 joins stage 1 further; stage 3 makes groups of stage 2 and gives the results.';
  expect(stagesInWords(stagesOf(rounds, () => ({})))).toBe(words);
});

test('stages that do not make a tree are not drawn', () => {
  const loop = [{ stage: 1, inputs: [{ stage: 1 }, { stream: 'a' }] }];
  expect(stagesOf(loop, () => ({}))).toEqual([]);
  expect(stagesOf([{ stage: 2, inputs: [{ stage: 1 }, { stream: 'a' }] }], () => ({}))).toEqual([]);
  expect(stagesOf('nothing', () => ({}))).toEqual([]);
  expect(stagesInWords(stagesOf([FIRST], () => ({})))).toBe('Stage 1 joins orders with payments and gives the results.');
});

test('queries with stages of their own are a tree each, and what several read is drawn once', () => {
  const several = report([
    { ...FIRST, results: 90 },
    { stage: 2, inputs: [{ stream: 'orders' }, { stream: 'orders' }], results: 8, queries: ['itself'] },
    { stage: 3, inputs: [{ stage: 1 }, { stream: 'refunds' }], results: 14, queries: ['three'] },
    { stage: 4, inputs: [{ stage: 1 }], results: 2, queries: ['main', 'grouped'], kind: null },
    { stage: 5, inputs: [{ stream: 'orders' }, { relation: 'customers', stream: null }], results: 6, queries: ['named'], kind: 'LEFT' },
  ]);
  shown(<StagesPanel report={several} isComing />);
  expect(
    screen.getByText(
      'Stage 1 joins orders with payments; stage 2 joins orders with orders and gives the results of itself; ' +
        'stage 3 joins stage 1 with refunds and gives the results of three; ' +
        'stage 4 makes groups of stage 1 and gives the results of main and grouped; ' +
        'stage 5 is orders LEFT JOIN customers and gives the results of named.',
    ),
  ).toBeDefined();
  const tree = within(screen.getByRole('region', { name: 'The plan as a tree of stages' }));
  expect(tree.getAllByText(/^results of/).map((end) => [end.textContent, end.previousElementSibling?.textContent])).toEqual([
    ['results of itself', '4/s'],
    ['results of three', '7/s'],
    ['results of main and grouped', '1/s'],
    ['results of named', '3/s'],
  ]);
  expect(tree.getAllByText('Stage 1')).toHaveLength(1);
  expect(tree.getByText('stage 1').parentElement?.textContent).toBe('stage 145/s');
  // A relation does not flow.
  expect(tree.getByText('customers').parentElement?.textContent).toBe('customers');
});
