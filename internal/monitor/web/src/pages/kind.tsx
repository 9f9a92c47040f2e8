// A kind: its objects, the versions of its definition, and what each change of it breaks.

import { address, type CheckedObjects, type Coverage, type Definitions, type DefinitionVersion, type Finding, type HealthSummary, type Params } from '../api';
import { useAnswer } from '../load';
import { BigCounts } from '../parts/counts';
import { Head, Missing, Nothing, Part } from '../parts/answer';
import { ObjectLink } from '../parts/names';
import { State } from '../parts/shape';
import { Table } from '../parts/table';
import { Troubled } from '../parts/troubled';
import { to } from '../route';
import { count, moment } from '../text';
import { CoveredBy } from './overview';

export function KindPage({ params }: { params: Params }) {
  const name = params.name ?? '';
  const health = useAnswer<HealthSummary>(address('health', { kind: name, all: 'true', limit: '500' }));
  const coverage = useAnswer<Coverage>(address('coverage'));
  const definitions = useAnswer<Definitions>(name.includes('.') ? address('definitions', { name }) : null);
  const covered = coverage.answer?.kinds.find((kind) => kind.name === name);
  const known = definitions.failure?.code === 404 ? { ...definitions, failure: undefined } : definitions;
  return (
    <>
      <Head title={name} above="Kind" view={health.answer?.view} at={health.at} failure={health.failure} reload={health.reload}>
        <p class="verdict">
          {covered && <CoveredBy of={covered} />} <a href={to('timeline', { kind: name })}>Its changes</a>
        </p>
      </Head>
      {name.includes('.') && (
        <Part title="Definition" loaded={known}>
          {definitions.failure?.code === 404 && <Nothing>No version of its definition is kept, or you may not list definitions.</Nothing>}
          {definitions.answer && <Versions of={definitions.answer.versions[0]} />}
        </Part>
      )}
      {definitions.answer && (
        <Part title="What changed in the definition" loaded={known}>
          <SchemaHistory of={definitions.answer.versions} kind={name} />
        </Part>
      )}
      <Part title="Objects" loaded={{ ...health, answer: undefined, failure: undefined }}>
        {health.answer && <BigCounts of={health.answer.counts} />}
        <Missing of={health.answer} />
        {health.answer?.objects.length === 0 && <Nothing>There is none.</Nothing>}
        {(health.answer?.objects.length ?? 0) > 0 && <Troubled of={health.answer?.objects ?? []} label="Objects" />}
      </Part>
    </>
  );
}

const yes = (of?: boolean): string => (of ? 'yes' : 'no');

function Versions({ of }: { of?: DefinitionVersion }) {
  if (!of?.versions) return <Nothing>{of?.problem ?? 'Its versions are not known.'}</Nothing>;
  return (
    <Table label="Versions" heads={['Version', 'Served', 'Stored', 'Deprecated']}>
      {of.versions.map((version) => (
        <tr key={version.name}>
          <th scope="row">{version.name}</th>
          <td>{yes(version.served)}</td>
          <td>{yes(version.storage)}</td>
          <td>{yes(version.deprecated)}</td>
        </tr>
      ))}
    </Table>
  );
}

function SchemaHistory({ of, kind }: { of: DefinitionVersion[]; kind: string }) {
  return (
    <ol class="changes">
      {of.map((version, i) => (
        <li key={`${version.uid} ${version.generation}`} class="change">
          <div class="line">
            <time dateTime={version.time}>{moment(version.time)}</time>
            <b>Generation {version.generation}</b>
            <span class="aside">{i === of.length - 1 ? 'the oldest that is kept' : told(version)}</span>
          </div>
          {version.problem && <p class="notes">{version.problem}</p>}
          <Findings of={version.findings ?? []} />
          {version.objects && <Checked of={version.objects} kind={kind} />}
        </li>
      ))}
    </ol>
  );
}

function told(version: DefinitionVersion): string {
  const breaking = version.findings?.filter((finding) => finding.severity === 'Breaking').length ?? 0;
  if (breaking > 0) return `breaks in ${count(breaking, 'place')}`;
  return version.findings?.length ? 'breaks nothing' : 'changes nothing in the schema';
}

function Findings({ of }: { of: Finding[] }) {
  if (of.length === 0) return null;
  return (
    <ul class="findings">
      {of.map((finding, i) => (
        <li key={i}>
          <State of={finding.severity} />
          <span>
            {finding.message}{' '}
            <code class="aside">
              {finding.version} {finding.path}
            </code>
          </span>
        </li>
      ))}
    </ul>
  );
}

// Checked says how the objects that there were fare with a version.
function Checked({ of, kind }: { of: CheckedObjects; kind: string }) {
  if (of.problem) return <p class="notes">The objects could not be checked: {of.problem}</p>;
  const broken = of.examples ?? [];
  return (
    <>
      <p class="notes">
        Of {count(of.checked, 'object')}, checked by {of.version} on {moment(of.time)}: {of.breaks} cannot be written any more, {of.breaksOnEdit} break on the next edit of a field, {of.unknown} could not be
        checked, {of.fine} are fine.
      </p>
      {broken.length > 0 && (
        <ul class="findings">
          {broken.map((object) => (
            <li key={`${object.namespace} ${object.name}`}>
              <State of={object.state} />
              <span>
                <ObjectLink of={{ ...object, kind }} /> {object.message} <code class="aside">{object.field}</code>
                {object.more ? ` and ${count(object.more, 'other problem')}` : ''}
              </span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
