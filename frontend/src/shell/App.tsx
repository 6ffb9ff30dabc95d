/** Who is there decides what is shown: nobody yet signs in, everybody else gets the pages. */
import { useQuery } from '@tanstack/react-query';
import { meQuery } from '../api/queries';
import { Loading } from '../components/Loading';
import { ProblemView } from '../components/ProblemView';
import { Frame } from './Frame';
import { Pages } from './Pages';
import { SignIn } from './SignIn';

const AGAIN_MS = 3_000;

export function App() {
  const me = useQuery({
    ...meQuery,
    refetchInterval: ({ state }) => (state.status === 'error' ? AGAIN_MS : false),
    // Somebody may have signed in or out in another window.
    refetchOnWindowFocus: 'always',
  });
  if (me.data) {
    return (
      <Frame me={me.data}>
        <Pages />
      </Frame>
    );
  }
  if (me.data === null) return <SignIn />;
  if (me.isPending) return <Loading what="the dashboard" />;
  return (
    <main>
      <h1 hidden>StreamJoin</h1>
      <ProblemView error={me.error} onRetry={() => void me.refetch()} />
    </main>
  );
}
