/** From a query that is looked at to what each operator would make of it. */
import { Anchor } from '@mantine/core';
import { Link } from 'react-router';

/** @param of the job with this id, or a query that no job has yet. */
export function CompareLink({ of }: { of: { job: string } | { query: string } }) {
  return (
    <Anchor component={Link} to={`/compare?${new URLSearchParams(of).toString()}`} fz="sm">
      Compare operators
    </Anchor>
  );
}
