/** Makes a chart as wide as the page, and as wide as the others again. */
import { ActionIcon, Tooltip } from '@mantine/core';
import { WidenIcon } from '../components/icons';
import classes from './TimeChart.module.css';

interface WidenButtonProps {
  /** Of the chart. */
  title: string;
  isWide: boolean;
  onWiden: (isWide: boolean) => void;
}

export function WidenButton({ title, isWide, onWiden }: WidenButtonProps) {
  return (
    <Tooltip label={isWide ? 'As wide as the others' : 'Full width'}>
      <ActionIcon
        className={classes.widen}
        variant="subtle"
        color="gray"
        size="sm"
        aria-label={`Full width: ${title}`}
        aria-pressed={isWide}
        onClick={() => onWiden(!isWide)}
      >
        <WidenIcon />
      </ActionIcon>
    </Tooltip>
  );
}
