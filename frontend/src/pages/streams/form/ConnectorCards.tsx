/** Where a stream comes from, as cards. */
import type { ReactNode } from 'react';
import { FilesIcon, GeneratorIcon, PostIcon, TopicIcon } from '../../../components/icons';
import classes from './ConnectorCards.module.css';
import { connectorOf, type Connector } from './draft';

interface Card {
  connector: Connector;
  /** The source that it begins with. */
  source: string;
  title: string;
  text: string;
  icon: ReactNode;
}

const CARDS: Card[] = [
  {
    connector: 'files',
    source: 'parquet',
    title: 'Files',
    text: 'A folder of Parquet, CSV, JSON lines or Arrow',
    icon: <FilesIcon />,
  },
  {
    connector: 'kafka',
    source: 'kafka',
    title: 'Kafka',
    text: 'A topic of JSON, CSV, Avro or Arrow',
    icon: <TopicIcon />,
  },
  {
    connector: 'push',
    source: 'push',
    title: 'HTTP push',
    text: 'Rows that programs post to this platform',
    icon: <PostIcon />,
  },
  {
    connector: 'generator',
    source: 'generator',
    title: 'Generator',
    text: 'Made-up rows at a set rate; no data is needed',
    icon: <GeneratorIcon />,
  },
];

export function ConnectorCards({ source, onChoose }: { source: string; onChoose: (source: string) => void }) {
  const chosen = connectorOf(source);
  return (
    <fieldset className={classes.cards}>
      <legend className={classes.legend}>Connector</legend>
      {CARDS.map(({ connector, source: first, title, text, icon }) => (
        <label key={connector} className={classes.choice}>
          <input
            type="radio"
            name="connector"
            className={classes.radio}
            checked={connector === chosen}
            onChange={() => onChoose(first)}
          />
          <span className={classes.card}>
            <span className={classes.icon}>{icon}</span>
            <span className={classes.title}>{title}</span>
            <span className={classes.text}>{text}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
