import { Anchor } from '@mantine/core';
import { Link } from 'react-router';
import { Empty } from '../components/Empty';
import { PageTitle } from '../components/PageTitle';

export function NotFound() {
  return (
    <>
      <PageTitle title="No such page" />
      <Empty title="Nothing is at this address">
        <Anchor component={Link} to="/" underline="always">
          Go to the overview
        </Anchor>
      </Empty>
    </>
  );
}
