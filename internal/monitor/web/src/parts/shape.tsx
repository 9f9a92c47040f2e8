// States, by shape and word. The colour only repeats what they say.

interface Look { tone: 'good' | 'busy' | 'bad' | 'quiet'; draw: string; filled?: boolean }

const check = 'M3.5 8.5l3 3 6-7';
const cross = 'M4.5 4.5l7 7m0-7l-7 7';
const triangle = 'M8 2.2L14.4 13.4H1.6z';
const half = 'M8 2.5a5.5 5.5 0 0 1 0 11z';
const looks: Record<string, Look> = {
  Healthy: { tone: 'good', draw: check },
  Live: { tone: 'good', draw: check },
  True: { tone: 'quiet', draw: check },
  False: { tone: 'quiet', draw: cross },
  Progressing: { tone: 'busy', draw: `${half}M8 2.5a5.5 5.5 0 1 0 0 11` },
  Pending: { tone: 'busy', draw: half },
  Listing: { tone: 'busy', draw: half },
  Behind: { tone: 'busy', draw: half },
  Failed: { tone: 'bad', draw: triangle, filled: true },
  Failing: { tone: 'bad', draw: triangle, filled: true },
  Refused: { tone: 'bad', draw: triangle, filled: true },
  Breaking: { tone: 'bad', draw: triangle, filled: true },
  Breaks: { tone: 'bad', draw: triangle, filled: true },
  BreaksOnEdit: { tone: 'busy', draw: triangle },
  Critical: { tone: 'bad', draw: triangle, filled: true },
  Risky: { tone: 'busy', draw: triangle },
  Warning: { tone: 'busy', draw: triangle },
  Info: { tone: 'quiet', draw: 'M8 7v5M8 4v.2' },
  Terminating: { tone: 'quiet', draw: 'M3 3h10v10H3zM3 13L13 3' },
  Stopping: { tone: 'quiet', draw: 'M3 3h10v10H3zM3 13L13 3' },
  Excluded: { tone: 'quiet', draw: 'M3 8h10' },
  Created: { tone: 'good', draw: 'M8 3v10M3 8h10' },
  Updated: { tone: 'quiet', draw: 'M3 11l8-8 2 2-8 8H3z' },
  Deleted: { tone: 'bad', draw: cross },
  Baseline: { tone: 'quiet', draw: 'M3 8h10M3 5v6M13 5v6' },
  Gap: { tone: 'busy', draw: 'M2 8h3M11 8h3M6.5 4.5v7M9.5 4.5v7' },
};
const other: Look = { tone: 'quiet', draw: 'M5.8 6a2.2 2.2 0 1 1 3 2c-.6.3-.8.7-.8 1.5M8 12v.2' };

export function Shape({ of }: { of: string }) {
  const look = looks[of] ?? other;
  return (
    <svg class={`shape ${look.tone}`} viewBox="0 0 16 16" aria-hidden="true">
      <path class={look.filled ? 'filled' : ''} d={look.draw} />
    </svg>
  );
}

export function State({ of }: { of: string }) {
  return (
    <span class="state">
      <Shape of={of} />
      {of}
    </span>
  );
}

// order is how states are listed: what needs somebody first.
export const order = ['Failed', 'Terminating', 'Progressing', 'Unknown', 'Healthy'];
