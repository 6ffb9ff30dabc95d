/** Around every page: where one can go, whether the platform answers, and who is there. */
import { useEffect, useRef, type ReactNode } from 'react';
import { NavLink, useLocation } from 'react-router';
import type { Me } from '../api/types';
import {
  BookmarkIcon,
  CompareIcon,
  JobIcon,
  KeyIcon,
  OverviewIcon,
  PlusIcon,
  RelationIcon,
  StreamIcon,
} from '../components/icons';
import { Connection } from './Connection';
import classes from './Frame.module.css';
import { SchemeButton } from './SchemeButton';
import { SignOut } from './SignOut';
import { ZoneSwitch } from './ZoneSwitch';

const PLACES = [
  { to: '/', label: 'Overview', icon: <OverviewIcon /> },
  { to: '/streams', label: 'Streams', icon: <StreamIcon /> },
  { to: '/relations', label: 'Relations', icon: <RelationIcon /> },
  { to: '/jobs', label: 'Jobs', icon: <JobIcon /> },
  { to: '/jobs/new', label: 'New join', icon: <PlusIcon /> },
  { to: '/compare', label: 'Compare', icon: <CompareIcon /> },
  { to: '/queries', label: 'Saved queries', icon: <BookmarkIcon /> },
];

/** Where people sign in, they have passwords and keys; admins see to everybody's. */
const placesOf = (me: Me) =>
  me.id === null
    ? PLACES
    : [...PLACES, { to: '/admin', label: me.role === 'admin' ? 'Users and keys' : 'Your account', icon: <KeyIcon /> }];

/** These show what is below their address, too. */
const WITH_BELOW = new Set(['/streams', '/relations']);

export function Frame({ me, children }: { me: Me; children: ReactNode }) {
  const main = useRef<HTMLElement>(null);
  const { pathname } = useLocation();
  const before = useRef(pathname);
  useEffect(() => {
    if (before.current === pathname) return;
    before.current = pathname;
    // Another page begins at its top, for eyes and for screen readers.
    main.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, [pathname]);
  return (
    <div className={classes.frame}>
      <button type="button" className={classes.skip} onClick={() => main.current?.focus()}>
        Skip to the page
      </button>
      <header className={classes.side}>
        <div className={classes.brand}>
          <img src="./icon.svg" alt="" width={22} height={22} />
          StreamJoin
        </div>
        <nav aria-label="Pages" className={classes.places}>
          {placesOf(me).map(({ to, label, icon }) => (
            <NavLink key={to} to={to} end={!WITH_BELOW.has(to)} className={classes.place}>
              {icon}
              {label}
            </NavLink>
          ))}
        </nav>
        <div className={classes.foot}>
          <Connection />
          <div className={classes.tools}>
            <SchemeButton />
            <ZoneSwitch />
            {me.id !== null && <SignOut name={me.name} />}
          </div>
        </div>
      </header>
      <main ref={main} id="main" tabIndex={-1} className={classes.main}>
        {children}
      </main>
    </div>
  );
}
