/** The page's parts around one query, which is a job's or is typed here. */
import { Select } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { streamsQuery, validateQuery } from '../../api/queries';
import type { Job } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Empty } from '../../components/Empty';
import { Loading } from '../../components/Loading';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { squigglesOf } from '../../editor/offsets';
import { SqlEditor } from '../../editor/SqlEditor';
import { formatRate } from '../../format';
import { explainDraft } from '../../recipes';
import { planOf } from '../join/plan';
import { streamsOf } from '../join/streamsOf';
import { useColumns } from '../join/useColumns';
import { Verdict } from '../join/Verdict';
import { ComparisonTable } from './ComparisonTable';
import classes from './CompareView.module.css';
import { runningOver, runsBy } from './measured';
import { Scaling } from './Scaling';
import { AUTO, draftOf, type Setting } from './setting';
import { SettingForm } from './SettingForm';
import { useComparison } from './useComparison';

/** Each change asks for all operators, so it is waited for a little longer than for a verdict alone. */
const TYPED_MS = 600;

const TYPED = 'typed';

interface CompareViewProps {
  job: Job | undefined;
  jobs: Job[];
  queryAtFirst: string;
  settingAtFirst: Setting;
  onChoose: (job: string | null, query: string) => void;
}

export function CompareView({ job, jobs, queryAtFirst, settingAtFirst, onChoose }: CompareViewProps) {
  const streams = useQuery(streamsQuery);
  const names = useMemo(() => streams.data?.data.map((stream) => stream.name) ?? [], [streams.data]);
  const [query, setQuery] = useState(queryAtFirst);
  const [given, setGiven] = useState(settingAtFirst);
  const [settled] = useDebouncedValue(query, TYPED_MS);
  const [settledSetting] = useDebouncedValue(given, TYPED_MS);
  const draft = useMemo(() => draftOf(settled, { ...settledSetting, knobs: {} }, AUTO), [settled, settledSetting]);
  const checked = useQuery({ ...validateQuery(draft), placeholderData: (before) => before });
  const columns = useColumns(settled, names);
  const squiggles = useMemo(
    () => (checked.isPlaceholderData ? [] : squigglesOf(settled, checked.data?.diagnostics ?? [])),
    [settled, checked.data, checked.isPlaceholderData],
  );
  const isValid = checked.data?.valid === true;
  const comparison = useComparison(settled, settledSetting, isValid && !checked.isPlaceholderData);
  const { base, setting, rows, asked, isAsking, error } = comparison;
  const plan = base && planOf(base);
  const auto = plan?.operator ?? AUTO;
  const arriving = plan?.arrivingPerS ?? null;
  const running = runningOver(jobs, streamsOf(settled, names)).map((one) => ({ job: one, by: runsBy(one, auto) }));
  return (
    <div className={classes.page}>
      <Panel
        title="Query"
        actions={
          <Select
            size="xs"
            w={240}
            aria-label="Whose query"
            data={[
              { value: TYPED, label: 'typed here' },
              ...jobs.map(({ id, name }) => ({ value: id, label: `of ${name}` })),
            ]}
            value={job?.query === query ? job.id : TYPED}
            allowDeselect={false}
            searchable
            comboboxProps={{ withinPortal: false }}
            onChange={(chosen) => onChoose(chosen === TYPED ? null : chosen, query)}
          />
        }
      >
        <div className={classes.editor}>
          <SqlEditor label="Query" value={query} onChange={setQuery} squiggles={squiggles} columns={columns} />
          <Verdict diagnostics={checked.data} isChecking={checked.isFetching} />
        </div>
      </Panel>
      <SettingForm
        query={settled}
        setting={{ ...given, knobs: { ...setting.knobs, ...given.knobs } }}
        names={comparison.names}
        asked={asked}
        onChange={setGiven}
      />
      {checked.error !== null && <ProblemView error={checked.error} onRetry={() => void checked.refetch()} />}
      <Panel
        title="Side by side"
        note={
          arriving === null ? (
            'predicted; nothing is started'
          ) : (
            <>predicted from a sample with {formatRate(arriving)} of event time; nothing is started</>
          )
        }
        actions={<CopyAs recipe={explainDraft(draft)} what="explain this query" />}
        flush
      >
        {error !== null && <ProblemView error={error} onRetry={comparison.retry} />}
        {!isValid && !checked.isFetching && (
          <Empty title="Nothing to compare yet">As soon as the query is right, its operators stand here.</Empty>
        )}
        {isValid && base === undefined && error === null && <Loading what="the operators" lines={6} />}
        {isValid && base !== undefined && (
          <ComparisonTable
            query={settled}
            rows={rows}
            auto={auto}
            arrivingPerS={arriving}
            running={running}
            isAsking={isAsking || checked.isFetching}
          />
        )}
      </Panel>
      {isValid && base !== undefined && (
        <Scaling query={settled} setting={setting} isSettled={!isAsking && !checked.isFetching} />
      )}
    </div>
  );
}
