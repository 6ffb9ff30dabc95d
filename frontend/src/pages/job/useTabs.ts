/** The tabs of a job's page, one of which the address names. */
import { useSearchParams } from 'react-router';

const FIRST = 'live';

const TABS = {
  [FIRST]: 'Live',
  ask: 'Ask',
  rejected: 'Rejected rows',
  logs: 'Logs',
  events: 'Events',
  definition: 'Definition',
  change: 'Change',
  revisions: 'Revisions',
};

/** Those who may not change a job may not read its logs either. */
const FOR_CHANGERS = new Set(['logs', 'change']);

export function useTabs(mayChange: boolean) {
  const [parameters, setParameters] = useSearchParams();
  const tabs = Object.entries(TABS).filter(([value]) => mayChange || !FOR_CHANGERS.has(value));
  const chosen = parameters.get('tab') ?? FIRST;
  return {
    tabs,
    tab: tabs.some(([value]) => value === chosen) ? chosen : FIRST,
    turnTo: (tab: string | null) => setParameters(tab === FIRST ? {} : { tab: tab ?? FIRST }),
  };
}
