/** What is drawn over the lines of a chart. */
import uPlot from 'uplot';
import type { ChartData } from './series';
import type { Ceiling } from './view';

const CUT_PX = 5;

export function drawMarks(chart: uPlot, { restartsS }: ChartData, { cut }: Ceiling, colour: string): void {
  drawRestarts(chart, restartsS, colour);
  if (cut !== null) drawCut(chart, cut.atS, colour);
}

/** An arrow at the upper edge, where a line goes on above it. */
function drawCut(chart: uPlot, atS: number, colour: string): void {
  const { ctx, bbox } = chart;
  const x = Math.round(chart.valToPos(atS, 'x', true));
  const size = CUT_PX * uPlot.pxRatio;
  ctx.save();
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x - size, bbox.top + size * 1.6);
  ctx.lineTo(x + size, bbox.top + size * 1.6);
  ctx.fill();
  ctx.restore();
}

function drawRestarts(chart: uPlot, restartsS: number[], colour: string): void {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.setLineDash([4, 4]);
  for (const atS of restartsS) {
    const x = Math.round(chart.valToPos(atS, 'x', true));
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
