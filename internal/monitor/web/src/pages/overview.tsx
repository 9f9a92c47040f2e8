// How everything is, on one page.

import { address, type Alarm, type Coverage, type Covered, type HealthSummary, type Kind, type Kinds, type Params, type Rate, type Rules } from '../api';
import { useAnswer } from '../load';
import { BigCounts, SmallCounts } from '../parts/counts';
import { Head, Nothing, Part } from '../parts/answer';
import { KindLink, ObjectLink } from '../parts/names';
import { RateChart } from '../parts/chart';
import { State } from '../parts/shape';
import { Table } from '../parts/table';
import { Troubled } from '../parts/troubled';
import { go, to } from '../route';
import { count, duration, number } from '../text';

const spans = { '1h': 'hour', '24h': 'day', '168h': 'week' };

export function OverviewPage({ params }: { params: Params }) {
  const since = params.since && params.since in spans ? params.since : '24h';
  const kinds = useAnswer<Kinds>(address('kinds'));
  const health = useAnswer<HealthSummary>(address('health', { limit: '20' }));
  const coverage = useAnswer<Coverage>(address('coverage'));
  const rate = useAnswer<Rate>(address('rate', { since, buckets: '72' }));
  const rules = useAnswer<Rules>(address('rules'));
  const objects = health.answer?.objects ?? [];
  const all = kinds.answer?.kinds ?? [];
  return (
    <>
      <Head title="Overview" view={coverage.answer?.view} at={coverage.at} />
      <Part title="Objects by health" loaded={health}>
        {health.answer && <BigCounts of={health.answer.counts} />}
      </Part>
      <Part title="Changes" loaded={rate}>
        <Spans chosen={since} />
        {rate.answer && <RateChart of={rate.answer} span={spans[since as keyof typeof spans]} />}
      </Part>
      {(rules.answer?.alarms.length ?? 0) > 0 && (
        <Part title="Firing" loaded={rules}>
          <Firing of={rules.answer?.alarms ?? []} />
        </Part>
      )}
      <Part title="Not healthy" loaded={health}>
        {health.answer && objects.length === 0 && <Nothing>Every object that can be judged is healthy.</Nothing>}
        {objects.length > 0 && <Troubled of={objects} label="Objects that are not healthy" />}
      </Part>
      <Part title="Kinds" loaded={kinds}>
        {kinds.answer && all.length === 0 && <Nothing>There is no kind that you may list in all namespaces.</Nothing>}
        {all.length > 0 && <KindTable kinds={all} health={health.answer} coverage={coverage.answer} />}
      </Part>
    </>
  );
}

function Spans({ chosen }: { chosen: string }) {
  return (
    <div class="choice" role="group" aria-label="Span of time">
      {Object.entries(spans).map(([since, word]) => (
        <button key={since} type="button" aria-pressed={since === chosen} onClick={() => go(to('overview', { since }), true)}>
          Last {word}
        </button>
      ))}
    </div>
  );
}

function Firing({ of }: { of: Alarm[] }) {
  return (
    <>
      <ul class="firing">
        {of.slice(0, 5).map((alarm) => (
          <li key={`${alarm.rule} ${alarm.kind} ${alarm.namespace} ${alarm.name}`}>
            <State of={alarm.severity ?? 'Warning'} /> <ObjectLink of={alarm} /> {alarm.message}
          </li>
        ))}
      </ul>
      <p>
        <a href={to('rules')}>{of.length > 5 ? `All ${number(of.length)} that fire` : 'All rules'}</a>
      </p>
    </>
  );
}

function KindTable({ kinds, health, coverage }: { kinds: Kind[]; health?: HealthSummary; coverage?: Coverage }) {
  const counts = new Map(health?.kinds.map((kind) => [kind.kind, kind.counts]));
  const covered = new Map(coverage?.kinds.map((kind) => [kind.name, kind]));
  return (
    <Table label="Kinds" heads={['Kind', 'Objects', 'Health', 'Coverage']}>
      {kinds.map((kind) => (
        <tr key={kind.name}>
          <th scope="row">
            <KindLink name={kind.name} />
          </th>
          <td class="number objects">{kind.objects === undefined ? '–' : number(kind.objects)}</td>
          <td>
            <SmallCounts of={counts.get(kind.name) ?? {}} />
          </td>
          <td>
            <CoveredBy of={covered.get(kind.name)} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

export function CoveredBy({ of }: { of?: Covered }) {
  if (!of) return <>–</>;
  return (
    <>
      <State of={of.state} />
      <span class="aside">
        {of.state === 'Live' && of.lagSeconds >= 0 && ` ${duration(of.lagSeconds)} behind`}
        {of.reason && ` ${of.reason}`}
        {of.gaps > 0 && ` ${count(of.gaps, 'gap')}`}
      </span>
    </>
  );
}
