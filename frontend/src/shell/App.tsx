/** Who is there decides what is shown: nobody yet signs in, everybody else gets the pages. */
import { useQuery } from '@tanstack/react-query';
import { asProblem } from '../api/problem';
import { meQuery } from '../api/queries';
import { Loading } from '../components/Loading';
import { ProblemView } from '../components/ProblemView';
import { Frame } from './Frame';
import { Pages } from './Pages';
import { SignIn } from './SignIn';

const AGAIN_MS = 3_000;

export function App() {
  const me = useQuery({ ...meQuery, refetchInterval: ({ state }) => (state.status === 'error' ? AGAIN_MS : false) });
  if (me.data !== undefined) {
    return (
      <Frame me={me.data}>
        <Pages />
      </Frame>
    );
  }
  if (me.isPending) return <Loading what="the dashboard" />;
  if (asProblem(me.error).status === 401) return <SignIn />;
  return (
    <main>
      <h1 hidden>StreamJoin</h1>
      <ProblemView error={me.error} onRetry={() => void me.refetch()} />
    </main>
  );
}
