import { expect, test } from 'vitest';
import { reportOf } from '../../../api/figures';
import { unitGrid } from './unitGrid';

const grid = (...labels: string[]) => {
  const units = labels.map((label, unit) => ({ label, unit }));
  const rows = unitGrid(reportOf({ at: null, span_s: 1, generation: 1, figures: { units } }).units);
  return rows.map((row) => [row.label, row.units.map((unit) => unit.label)]);
};

test('units of a biclique stand in a row for each side', () => {
  expect(grid('R0', 'R1', 'S0')).toEqual([
    ['units of R', ['R0', 'R1']],
    ['units of S', ['S0']],
  ]);
});

test('cells of a matrix stand in its rows', () => {
  expect(grid('cell 0,0', 'cell 0,1', 'cell 1,0', 'cell 1,1')).toEqual([
    ['row 0', ['cell 0,0', 'cell 0,1']],
    ['row 1', ['cell 1,0', 'cell 1,1']],
  ]);
});

test('rows of a matrix are known, whose cells stand in columns', () => {
  const labelled = ['cell 0,0', 'cell 1,0', 'R0'].map((label) => ({ label }));
  expect(unitGrid(labelled).map((row) => row.isOfMatrix)).toEqual([true, true, false]);
});

test('units of each stage stand by themselves', () => {
  expect(grid('1.R0', '1.S0', '2.R0', '2.cell 0,0', '2.cell 0,1')).toEqual([
    ['stage 1, units of R', ['1.R0']],
    ['stage 1, units of S', ['1.S0']],
    ['stage 2, units of R', ['2.R0']],
    ['stage 2, row 0', ['2.cell 0,0', '2.cell 0,1']],
  ]);
  expect(unitGrid([{ label: '2.cell 0,0' }]).map((row) => row.isOfMatrix)).toEqual([true]);
});

test('others stand side by side', () => {
  expect(grid('slot a', 'slot b')).toEqual([['units', ['slot a', 'slot b']]]);
});
