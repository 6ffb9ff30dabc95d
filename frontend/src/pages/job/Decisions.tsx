/** Why units of a join came and went, newest first. */
import { Table, Text } from '@mantine/core';
import { lastModel, type Decision, type RingModel } from '../../api/adaptive';
import type { Report } from '../../api/figures';
import { Empty } from '../../components/Empty';
import { Panel } from '../../components/Panel';
import { formatBytes, formatCount, formatSeconds, formatShare } from '../../format';
import { useTimes } from '../../times';
import classes from './StreamFigures.module.css';

const SHOWN_MAX = 50;

const named = (what: string, units: number[]): string =>
  units.length > 0 ? `${what} ${units.length === 1 ? 'unit' : 'units'} ${units.join(', ')}` : '';

/** Such as: adds units 8, 9. Of a ring: adds units 8, 9, aggressive. */
export const decisionWords = ({ added, drained, left, way }: Decision): string =>
  [named('adds', added), named('drains', drained), left.length > 0 ? `${named('', left).trim()} left, empty` : '']
    .filter((words) => words !== '')
    .join('; ') + (way === '' ? '' : `, ${way}`);

/** Whose units: a subgroup's, or a ring's. */
const whose = ({ side, group }: Decision): string => (side === 'ring' ? side : `${side}, subgroup ${String(group)}`);

/** Such as: T_j 12.0 µs (measured), T_s 0.140 µs (assumed). */
export const timesWords = ({ times }: RingModel): string =>
  times.map(({ symbol, us, origin }) => `${symbol} ${formatSeconds(us / 1e6)} (${origin})`).join(', ');

const lengthsWords = ({ lengths }: RingModel): string =>
  Object.entries(lengths)
    .map(([stream, nodes]) => `${stream} ${String(nodes)}`)
    .join(', ');

export function Decisions({ reports, span }: { reports: Report[]; span: string }) {
  const times = useTimes();
  const all = reports.flatMap(({ decisions }) => decisions).reverse();
  const stages = new Set(all.map(({ stage }) => stage)).size;
  const model = lastModel(reports);
  return (
    <Panel title="Units that come and go" note={`decisions of the last ${span}, newest first`} flush>
      {model && (
        <Text size="sm" c="dimmed" px="md" py="xs">
          N* follows from {timesWords(model)}. Best lengths by stream: {lengthsWords(model)}. A link has to carry{' '}
          {formatBytes(model.bandwidthBytesPerS)}/s.
        </Text>
      )}
      {all.length === 0 ? (
        <Empty title="Nothing was decided" />
      ) : (
        <div className={classes.scrolled} role="region" aria-label="Decisions about units" tabIndex={0}>
          <Table>
            <Table.Thead>
              <Table.Tr>
                {['Time', 'Batch', 'Of', 'Decision'].map((head) => (
                  <Table.Th key={head} scope="col">
                    {head}
                  </Table.Th>
                ))}
                {['Units before', 'Stored', 'Load', 'Asked for'].map((head) => (
                  <Table.Th key={head} scope="col" className={classes.figure}>
                    {head}
                  </Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {all.slice(0, SHOWN_MAX).map((one) => (
                <Table.Tr key={`${String(one.stage)} ${String(one.plan)}`}>
                  <Table.Td>{times.timeOfUs(one.atUs)}</Table.Td>
                  <Table.Td>{formatCount(one.batch)}</Table.Td>
                  <Table.Td>
                    {stages > 1 && `stage ${String(one.stage)}, `}
                    {whose(one)}
                  </Table.Td>
                  <Table.Td>{decisionWords(one)}</Table.Td>
                  <Table.Td className={classes.figure}>{formatCount(one.units)}</Table.Td>
                  <Table.Td className={classes.figure}>{one.left.length > 0 ? '–' : formatBytes(one.bytes)}</Table.Td>
                  <Table.Td className={classes.figure}>{one.left.length > 0 ? '–' : formatShare(one.load)}</Table.Td>
                  <Table.Td className={classes.figure}>
                    {one.left.length > 0 ? '–' : `${one.wish > 0 ? '+' : ''}${String(one.wish)}`}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </div>
      )}
    </Panel>
  );
}
