/** The page's parts around one query, which is a job's or is typed here. */
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { streamsQuery } from '../../api/queries';
import type { Job } from '../../api/types';
import { ProblemView } from '../../components/ProblemView';
import { ComparedQuery } from './ComparedQuery';
import classes from './CompareView.module.css';
import { Scaling } from './Scaling';
import type { Setting } from './setting';
import { SettingForm } from './SettingForm';
import { SideBySide } from './SideBySide';
import { useComparison } from './useComparison';
import { useSettled } from './useSettled';

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
  const settled = useSettled(query, given);
  const { checked, isValid } = settled;
  const comparison = useComparison(settled.query, settled.setting, isValid && !checked.isPlaceholderData);
  const { base, setting, asked, isAsking } = comparison;
  return (
    <div className={classes.page}>
      <ComparedQuery
        job={job}
        jobs={jobs}
        names={names}
        query={query}
        settled={settled}
        onType={setQuery}
        onChoose={(chosen) => onChoose(chosen, query)}
      />
      <SettingForm
        query={settled.query}
        setting={{ ...given, knobs: { ...setting.knobs, ...given.knobs } }}
        names={comparison.names}
        asked={asked}
        onChange={setGiven}
      />
      {checked.error !== null && <ProblemView error={checked.error} onRetry={() => void checked.refetch()} />}
      <SideBySide settled={settled} comparison={comparison} jobs={jobs} names={names} />
      {isValid && base !== undefined && (
        <Scaling query={settled.query} setting={setting} isSettled={!isAsking && !checked.isFetching} />
      )}
    </div>
  );
}
