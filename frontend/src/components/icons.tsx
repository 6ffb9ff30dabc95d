/** The icons there are: strokes in the text's colour, hidden from screen readers because a label stands beside them. */
import type { ReactNode } from 'react';

function Icon({ children }: { children: ReactNode }) {
  return (
    <svg
      width="16"
      height="16"
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="2"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {children}
    </svg>
  );
}

export const OverviewIcon = () => (
  <Icon>
    <rect x="3" y="3" width="7" height="9" rx="1" />
    <rect x="14" y="3" width="7" height="5" rx="1" />
    <rect x="14" y="12" width="7" height="9" rx="1" />
    <rect x="3" y="16" width="7" height="5" rx="1" />
  </Icon>
);

export const StreamIcon = () => (
  <Icon>
    <path d="M3 7c4-4 6 4 9 0s5 4 9 0M3 16c4-4 6 4 9 0s5 4 9 0" />
  </Icon>
);

export const RelationIcon = () => (
  <Icon>
    <rect x="3" y="4" width="18" height="16" rx="1" />
    <path d="M3 9h18M9 9v11" />
  </Icon>
);

export const JobIcon = () => (
  <Icon>
    <path d="M3 6h4c5 0 5 12 10 12h4M3 18h4c2.500 0 3.700-3 5-6 1.300-3 2.500-6 5-6h4" />
  </Icon>
);

export const PlusIcon = () => (
  <Icon>
    <path d="M12 5v14M5 12h14" />
  </Icon>
);

export const WidenIcon = () => (
  <Icon>
    <path d="M3 12h18M7 8l-4 4 4 4M17 8l4 4-4 4" />
  </Icon>
);

export const CopyIcon = () => (
  <Icon>
    <rect x="9" y="9" width="11" height="11" rx="2" />
    <path d="M5 15V6a2 2 0 0 1 2-2h9" />
  </Icon>
);

export const CheckIcon = () => (
  <Icon>
    <path d="M5 13l4 4L19 7" />
  </Icon>
);

export const SunIcon = () => (
  <Icon>
    <circle cx="12" cy="12" r="4" />
    <path d="M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.500 1.500M17.500 17.500L19 19M19 5l-1.500 1.500M6.500 17.500L5 19" />
  </Icon>
);

export const MoonIcon = () => (
  <Icon>
    <path d="M20 14.500A8.500 8.500 0 0 1 9.500 4 8.500 8.500 0 1 0 20 14.500z" />
  </Icon>
);

export const PlayIcon = () => (
  <Icon>
    <path d="M7 5l12 7-12 7z" />
  </Icon>
);

export const PauseIcon = () => (
  <Icon>
    <path d="M8 5v14M16 5v14" />
  </Icon>
);

export const StopIcon = () => (
  <Icon>
    <rect x="6" y="6" width="12" height="12" rx="1" />
  </Icon>
);

export const RestartIcon = () => (
  <Icon>
    <path d="M20 11a8 8 0 1 0-2.300 6.300M20 5v6h-6" />
  </Icon>
);

export const MoreIcon = () => (
  <Icon>
    <circle cx="5" cy="12" r="1" />
    <circle cx="12" cy="12" r="1" />
    <circle cx="19" cy="12" r="1" />
  </Icon>
);

export const CompareIcon = () => (
  <Icon>
    <path d="M5 20v-7M12 20V4M19 20v-11M3 20h18" />
  </Icon>
);

export const BookmarkIcon = () => (
  <Icon>
    <path d="M7 4h10a1 1 0 0 1 1 1v15l-6-4.500L6 20V5a1 1 0 0 1 1-1z" />
  </Icon>
);

export const KeyIcon = () => (
  <Icon>
    <circle cx="8" cy="15" r="4" />
    <path d="M11 12l8-8M15.500 7.500l3 3M18 5l2 2" />
  </Icon>
);

export const RemoveIcon = () => (
  <Icon>
    <path d="M6 6l12 12M18 6L6 18" />
  </Icon>
);

export const FilesIcon = () => (
  <Icon>
    <path d="M14 3H7a1 1 0 0 0-1 1v16a1 1 0 0 0 1 1h10a1 1 0 0 0 1-1V7zM14 3v4h4M9 12h6M9 16h6" />
  </Icon>
);

export const FolderIcon = () => (
  <Icon>
    <path d="M3 6a1 1 0 0 1 1-1h5l2 3h9a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1Z" />
  </Icon>
);

export const TopicIcon = () => (
  <Icon>
    <path d="M4 6h10M4 12h16M4 18h13" />
    <circle cx="18" cy="6" r="2" />
  </Icon>
);

export const PostIcon = () => (
  <Icon>
    <path d="M12 15V4M8 8l4-4 4 4M4 15v4a1 1 0 0 0 1 1h14a1 1 0 0 0 1-1v-4" />
  </Icon>
);

export const GeneratorIcon = () => (
  <Icon>
    <rect x="4" y="4" width="16" height="16" rx="3" />
    <path d="M8.500 8.500h.100M12 12h.100M15.500 15.500h.100" />
  </Icon>
);
