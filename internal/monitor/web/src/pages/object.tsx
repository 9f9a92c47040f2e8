// One object: how it is, what belongs to it, and what happened to it.

import { address, type Changes, type Condition, type KubeObject, type Params } from '../api';
import { useAnswer } from '../load';
import { Head, Missing, Nothing, Part } from '../parts/answer';
import { Comparison } from '../parts/comparison';
import { History } from '../parts/history';
import { KindLink } from '../parts/names';
import { Shape, State } from '../parts/shape';
import { Table } from '../parts/table';
import { Tree } from '../parts/tree';
import { Why } from '../parts/troubled';
import { toObject } from '../route';
import { moment } from '../text';
import { orderly, yaml } from '../yaml';

export function ObjectPage({ params }: { params: Params }) {
  const { kind = '', namespace, name = '', uid, at } = params;
  const about = { kind, namespace, name, uid };
  const object = useAnswer<KubeObject>(address('object', { ...about, at }), !at);
  const history = useAnswer<Changes>(address('history', { ...about, limit: '100' }));
  const found = object.answer;
  return (
    <>
      <Head
        title={name}
        above={
          <>
            <KindLink name={kind} />
            {namespace && <> in namespace {namespace}</>}
          </>
        }
        view={found?.view}
        at={object.at}
        failure={object.failure}
        reload={object.reload}
      >
        {found && <Now of={found} />}
      </Head>
      {found && (
        <>
          {found.conditions && <Conditions of={found.conditions} />}
          {found.exists && !at && (
            <Part title="Owners and children" loaded={object}>
              <Tree of={found} />
            </Part>
          )}
          <Part title="History" loaded={history}>
            {history.answer && <History of={history.answer.changes} about={about} next={history.answer.next} />}
          </Part>
          {(params.from || params.to) && <Comparison about={about} from={params.from} to={params.to} />}
          <section aria-labelledby="content">
            <h2 id="content">{at ? `Content at ${moment(at)}` : 'Content'}</h2>
            <Content of={found} />
          </section>
        </>
      )}
    </>
  );
}

function Now({ of }: { of: KubeObject }) {
  const now = toObject(of.kind, of.namespace, of.name);
  if (of.at) {
    return (
      <p class="verdict">
        {of.exists ? 'As it was' : 'It did not exist'} at {moment(of.at)}. <a href={now}>As it is now</a>
      </p>
    );
  }
  if (!of.exists) {
    return (
      <p class="verdict">
        <State of="Deleted" /> It does not exist any more{of.lastChange && `: deleted ${moment(of.lastChange.time)}`}.
      </p>
    );
  }
  if (!of.health) return null;
  return (
    <p class="verdict">
      <State of={of.health.state} /> <Why of={of.health} />
    </p>
  );
}

function Conditions({ of }: { of: Condition[] }) {
  return (
    <section aria-labelledby="conditions">
      <h2 id="conditions">Conditions</h2>
      <Table label="Conditions" heads={['Condition', 'Status', 'Why', 'Since']}>
        {of.map((condition) => (
          <tr key={condition.type}>
            <th scope="row">{condition.type}</th>
            <td>
              <span class="state">
                <Shape of={condition.status} />
                {condition.status}
              </span>
            </td>
            <td>
              <Why of={condition} />
            </td>
            <td class="when">{condition.since && moment(condition.since)}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

function Content({ of }: { of: KubeObject }) {
  return (
    <>
      <Missing of={of} />
      {of.metadataOnly && <p class="notes">Only the metadata were kept: {of.reason}</p>}
      {of.object === undefined ? (
        <Nothing>There is no content.</Nothing>
      ) : (
        <pre class="yaml" tabIndex={0} aria-label="The object as YAML">
          {yaml(orderly(of.object))}
        </pre>
      )}
    </>
  );
}
