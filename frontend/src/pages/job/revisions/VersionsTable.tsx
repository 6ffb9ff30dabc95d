/** The versions of a job in rows: when each was made, by whom and what for; two of them are chosen. */
import { Button, Radio, Table, VisuallyHidden } from '@mantine/core';
import { Ago } from '../../../components/Ago';
import type { Definition } from '../change/definition';
import classes from './Revisions.module.css';
import { usePeople } from './usePeople';
import { changedWords, type Version } from './versions';

interface VersionsTableProps {
  /** The newest first. */
  versions: Version[];
  before: Version | undefined;
  after: Version | undefined;
  onChoose: (as: Side, version: number) => void;
  /** Null for who may not change the job. */
  onGoBack: ((definition: Definition) => void) | null;
}

type Side = 'before' | 'after';

export function VersionsTable({ versions, before, after, onChoose, onGoBack }: VersionsTableProps) {
  const { hasPeople, nameOf } = usePeople();
  return (
    <div className={classes.scrolled} role="region" aria-label="List of versions" tabIndex={0}>
      <Table className={classes.table} highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col" className={classes.choice}>
              Before
            </Table.Th>
            <Table.Th scope="col" className={classes.choice}>
              After
            </Table.Th>
            <Table.Th scope="col">Version</Table.Th>
            <Table.Th scope="col">Made</Table.Th>
            {hasPeople && <Table.Th scope="col">By</Table.Th>}
            <Table.Th scope="col">What it changed</Table.Th>
            <Table.Th scope="col">
              <VisuallyHidden>Go back</VisuallyHidden>
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {versions.map((one, place) => (
            <Table.Tr key={one.version}>
              <Choice as="before" of={one} isChosen={one === before} onChoose={onChoose} />
              <Choice as="after" of={one} isChosen={one === after} onChoose={onChoose} />
              <Table.Td className={classes.version}>
                {one.version}
                {one.isCurrent && <span className={classes.current}>now</span>}
              </Table.Td>
              <Table.Td className={classes.since}>
                <Ago at={one.since} />
              </Table.Td>
              {hasPeople && <Table.Td className={classes.since}>{nameOf(one.actorId)}</Table.Td>}
              <Table.Td className={classes.changed}>
                {place === versions.length - 1 ? beginningOf(one) : changedWords(one) || 'nothing'}
              </Table.Td>
              <Table.Td className={classes.action}>
                {!one.isCurrent && onGoBack !== null && <GoBack to={one} onGoBack={onGoBack} />}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}

interface ChoiceProps {
  as: Side;
  of: Version;
  isChosen: boolean;
  onChoose: VersionsTableProps['onChoose'];
}

function Choice({ as, of, isChosen, onChoose }: ChoiceProps) {
  return (
    <Table.Td className={classes.choice}>
      <Radio
        size="xs"
        name={as}
        aria-label={`Version ${String(of.version)} as ${as}`}
        checked={isChosen}
        onChange={() => onChoose(as, of.version)}
      />
    </Table.Td>
  );
}

const beginningOf = ({ since }: Version): string =>
  since === null ? 'older ones are not listed' : 'the job was created';

function GoBack({ to, onGoBack }: { to: Version; onGoBack: (definition: Definition) => void }) {
  return (
    <Button
      variant="default"
      aria-label={`Go back to version ${String(to.version)}`}
      onClick={() => onGoBack(to.definition)}
    >
      Go back
    </Button>
  );
}
