/** The lines of a chart, each with its value at one place. */
import { dashesOf } from '../theme/theme';
import { valueAt, type Series } from './series';
import classes from './TimeChart.module.css';

interface LegendProps {
  series: Series[];
  colours: readonly string[];
  place: number;
  format: (value: number | null) => string;
}

export function Legend({ series, colours, place, format }: LegendProps) {
  return (
    <ul className={classes.legend} aria-hidden="true">
      {series.map((one, number) => (
        <li key={number}>
          <svg className={classes.key} width={22} height={4}>
            <line
              x2={22}
              y1={2}
              y2={2}
              stroke={colours[number % colours.length]}
              strokeWidth={2}
              strokeDasharray={dashesOf(number).join(' ')}
            />
          </svg>
          <bdi>{one.label}</bdi> <b>{format(valueAt(one, place))}</b>
        </li>
      ))}
    </ul>
  );
}
