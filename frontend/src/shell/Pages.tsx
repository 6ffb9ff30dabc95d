/** Which page an address shows. */
import { lazy, Suspense } from 'react';
import { Route, Routes, useLocation } from 'react-router';
import { Loading } from '../components/Loading';
import { AdminPage } from '../pages/admin/AdminPage';
import { JobPage } from '../pages/job/JobPage';
import { JobsPage } from '../pages/jobs/JobsPage';
import { OverviewPage } from '../pages/overview/OverviewPage';
import { QueriesPage } from '../pages/queries/QueriesPage';
import { EditRelationPage } from '../pages/relations/EditRelationPage';
import { NewRelationPage } from '../pages/relations/NewRelationPage';
import { RelationPage } from '../pages/relations/RelationPage';
import { RelationsPage } from '../pages/relations/RelationsPage';
import { StreamPage } from '../pages/streams/StreamPage';
import { StreamsPage } from '../pages/streams/StreamsPage';
import { Failsafe } from './Failsafe';
import { NotFound } from './NotFound';

// Editors and long forms are large, and only these pages have one.
const ComparePage = lazy(() => import('../pages/compare/ComparePage').then((page) => ({ default: page.ComparePage })));
const EditStreamPage = lazy(() =>
  import('../pages/streams/EditStreamPage').then((page) => ({ default: page.EditStreamPage })),
);
const NewStreamPage = lazy(() =>
  import('../pages/streams/NewStreamPage').then((page) => ({ default: page.NewStreamPage })),
);
const NewJoinPage = lazy(() => import('../pages/join/NewJoinPage').then((page) => ({ default: page.NewJoinPage })));

export function Pages() {
  const { pathname } = useLocation();
  return (
    <Failsafe key={pathname}>
      <Suspense fallback={<Loading what="the page" />}>
        <Routes>
          <Route path="/" element={<OverviewPage />} />
          <Route path="/streams" element={<StreamsPage />} />
          <Route path="/streams/new" element={<NewStreamPage />} />
          <Route path="/streams/:name" element={<StreamPage />} />
          <Route path="/streams/:name/edit" element={<EditStreamPage />} />
          <Route path="/relations" element={<RelationsPage />} />
          <Route path="/relations/new" element={<NewRelationPage />} />
          <Route path="/relations/:name" element={<RelationPage />} />
          <Route path="/relations/:name/edit" element={<EditRelationPage />} />
          <Route path="/jobs" element={<JobsPage />} />
          <Route path="/jobs/new" element={<NewJoinPage />} />
          <Route path="/jobs/:id" element={<JobPage />} />
          <Route path="/compare" element={<ComparePage />} />
          <Route path="/queries" element={<QueriesPage />} />
          <Route path="/admin" element={<AdminPage />} />
          <Route path="*" element={<NotFound />} />
        </Routes>
      </Suspense>
    </Failsafe>
  );
}
