/** Whether the platform is out of reach. */
import { asProblem } from './problem';

/** What a query knows of its last try. */
interface Asked {
  error: Error | null;
  /** Of a try that is going to be repeated. */
  failureReason: Error | null;
}

const GATEWAYS = new Set([502, 503, 504]);

/** No answer at all, or one from something that stands before a platform which is away. */
const isUnreachable = (error: Error | null): boolean => {
  if (error === null) return false;
  const { status, code } = asProblem(error);
  return code === 'unreachable' || (code === 'unavailable' && GATEWAYS.has(status));
};

/** Also while the next try is on its way. */
export const isLost = ({ error, failureReason }: Asked): boolean => isUnreachable(failureReason ?? error);
