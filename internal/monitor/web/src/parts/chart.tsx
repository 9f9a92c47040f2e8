// How many changes there were in spans of time. The text beside it says the same to who cannot see it.

import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import type { Rate } from '../api';
import { count, duration, moment, number } from '../text';

const height = 120;

export function RateChart({ of, span }: { of: Rate; span: string }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    let plot = draw(element, of);
    const again = () => {
      plot.destroy();
      plot = draw(element, of);
    };
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    dark.addEventListener('change', again);
    resized.observe(element);
    return () => {
      dark.removeEventListener('change', again);
      resized.disconnect();
      plot.destroy();
    };
  }, [of]);
  return (
    <figure>
      <div ref={place} class="chart" aria-hidden="true" />
      <figcaption>{caption(of, span)}</figcaption>
    </figure>
  );
}

function caption(of: Rate, span: string): string {
  const all = of.buckets.reduce((sum, bucket) => sum + bucket.changes, 0);
  const most = of.buckets.reduce((a, b) => (b.changes > a.changes ? b : a), { start: '', changes: 0 });
  if (all === 0) return `No change in the last ${span}.`;
  return `${count(all, 'change')} in the last ${span}; at most ${number(most.changes)} in ${duration(of.widthSeconds)}, from ${moment(most.start)}.`;
}

function draw(element: HTMLElement, of: Rate): uPlot {
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const font = `12px ${style.fontFamily}`;
  const axis: uPlot.Axis = { stroke: colour('--muted'), font, ticks: { show: false }, grid: { stroke: colour('--line'), width: 1 } };
  const starts = of.buckets.map((bucket) => Date.parse(bucket.start) / 1000);
  const options: uPlot.Options = {
    width: element.clientWidth,
    height,
    padding: [8, 0, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_, __, highest) => [0, Math.max(highest, 4)] } },
    axes: [
      { ...axis, grid: { show: false }, space: 70, size: 28, values: labels },
      { ...axis, space: 40, size: 44, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 100000] },
    ],
    series: [
      {},
      {
        fill: colour('--accent'),
        width: 0,
        points: { show: false },
        paths: uPlot.paths.bars?.({ size: [0.8, 24], align: 1 }),
      },
    ],
  };
  return new uPlot(options, [starts, of.buckets.map((bucket) => bucket.changes)], element);
}

function labels(_: uPlot, times: number[]): string[] {
  const hour = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
  const date = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
  return times.map((at) => {
    const moment = new Date(at * 1000);
    return moment.getHours() === 0 && moment.getMinutes() === 0 ? date.format(moment) : hour.format(moment);
  });
}
