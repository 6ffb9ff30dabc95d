/** What can be done with all charts of a page, for those who do not drag: a part of the time, and another scale. */
import { Button } from '@mantine/core';
import classes from './ChartTools.module.css';
import { moved, scaled, within, type Stretch, type View } from './view';

interface ChartToolsProps {
  /** All the time there is; null for none. */
  all: Stretch | null;
  view: View;
  onView: (view: View) => void;
}

export function ChartTools({ all, view, onView }: ChartToolsProps) {
  const shown = view.zoom ?? all;
  const zoomTo = (to: Stretch) => onView({ ...view, zoom: within(all, to) });
  const steps = shown && {
    Earlier: () => zoomTo(moved(shown, -0.5)),
    Later: () => zoomTo(moved(shown, 0.5)),
    'Zoom in': () => zoomTo(scaled(shown, 0.5)),
    'Zoom out': () => zoomTo(scaled(shown, 2)),
    'Show all': () => onView({ ...view, zoom: null }),
  };
  return (
    <div className={classes.tools} role="toolbar" aria-label="Charts">
      <Button
        variant={view.isLog ? 'filled' : 'default'}
        aria-pressed={view.isLog}
        onClick={() => onView({ ...view, isLog: !view.isLog })}
      >
        Log scale
      </Button>
      {steps !== null &&
        Object.entries(steps).map(([name, act]) => (
          <Button key={name} variant="default" disabled={view.zoom === null && name !== 'Zoom in'} onClick={act}>
            {name}
          </Button>
        ))}
    </div>
  );
}
