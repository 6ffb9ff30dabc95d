/** Lines over numbers that double, named at their ends. The figures stand in a table beside it, so it is one picture. */
import { useComputedColorScheme } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { dashesOf, SERIES } from '../../theme/theme';
import classes from './LineChart.module.css';
import { endNames, ticksOf, type Line } from './scaling';

interface LineChartProps {
  x: readonly number[];
  lines: readonly Line[];
  format: (value: number | null) => string;
  /** Whether values are bytes, whose round numbers are others. */
  isBytes: boolean;
  /** Of a round value at the side. */
  formatTick: (value: number) => string;
}

const HEIGHT = 240;
const LEFT = 84;
const RIGHT = 108;
const TOP = 16;
const BOTTOM = 30;
const TICKS = 4;
const NAME_PX = 16;

export function LineChart({ x, lines, format, isBytes, formatTick }: LineChartProps) {
  const scheme = useComputedColorScheme('light');
  const { ref, width } = useElementSize();
  const colours = SERIES[scheme];
  const scale = scaleOf(x, lines, width, isBytes);
  const points = lines.map(({ values }) =>
    values.flatMap((value, place) => (value === null ? [] : [{ x: scale.atX(place), y: scale.atY(value) }])),
  );
  const ends = points.map((line) => line[line.length - 1]?.y ?? null);
  const endX = Math.max(...points.map((line) => line[line.length - 1]?.x ?? LEFT));
  const words = lines.map(({ label, values }) => `${label} up to ${format(values[values.length - 1] ?? null)}`);
  return (
    <div ref={ref} className={classes.chart} role="img" aria-label={`By slots: ${words.join('; ')}`}>
      {width > 0 && (
        <svg width={width} height={HEIGHT} aria-hidden="true">
          <Axes x={x} scale={scale} formatTick={formatTick} />
          {points.map((line, number) => (
            <g key={lines[number]?.label} style={{ color: colours[number % colours.length] }}>
              <polyline
                className={classes.line}
                strokeDasharray={dashesOf(number).join(' ')}
                points={line.map((point) => `${String(point.x)},${String(point.y)}`).join(' ')}
              />
              {line.map((point) => (
                <circle key={point.x} className={classes.point} cx={point.x} cy={point.y} r={3} />
              ))}
            </g>
          ))}
          {endNames(ends, NAME_PX, HEIGHT - BOTTOM).map(({ line, y }) => (
            <text
              key={line}
              className={classes.name}
              x={endX + 10}
              y={y + 4}
              style={{ fill: colours[line % colours.length] }}
            >
              {lines[line]?.label}
            </text>
          ))}
        </svg>
      )}
    </div>
  );
}

/** Where numbers and values stand, in pixels. */
interface Scale {
  ticks: number[];
  right: number;
  atX: (place: number) => number;
  atY: (value: number) => number;
}

function scaleOf(x: readonly number[], lines: readonly Line[], width: number, isBytes: boolean): Scale {
  const most = Math.max(...lines.flatMap(({ values }) => values.filter((value) => value !== null)), 0);
  const ticks = ticksOf(most, TICKS, isBytes ? 2 : 10);
  const top = ticks[ticks.length - 1] ?? 1;
  const right = Math.max(LEFT + 1, width - RIGHT);
  return {
    ticks,
    right,
    atX: (place) => LEFT + (place / Math.max(1, x.length - 1)) * (right - LEFT),
    atY: (value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - BOTTOM - TOP),
  };
}

interface AxesProps extends Pick<LineChartProps, 'x' | 'formatTick'> {
  scale: Scale;
}

function Axes({ x, scale: { ticks, right, atX, atY }, formatTick }: AxesProps) {
  return (
    <>
      {ticks.map((tick) => (
        <g key={tick}>
          <line className={classes.grid} x1={LEFT} x2={right} y1={atY(tick)} y2={atY(tick)} />
          <text className={classes.axis} x={LEFT - 10} y={atY(tick) + 4} textAnchor="end">
            {formatTick(tick)}
          </text>
        </g>
      ))}
      {x.map((slots, place) => (
        <text key={slots} className={classes.axis} x={atX(place)} y={HEIGHT - 10} textAnchor="middle">
          {slots}
          {place === 0 && (slots === 1 ? ' slot' : ' slots')}
        </text>
      ))}
    </>
  );
}
