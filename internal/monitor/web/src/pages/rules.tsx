// The rules, and what fires.

import { address, type Alarm, type Params, type Rule, type Rules } from '../api';
import { useAnswer } from '../load';
import { Head, Nothing, Part } from '../parts/answer';
import { ObjectLink } from '../parts/names';
import { State } from '../parts/shape';
import { Table } from '../parts/table';
import { useNow } from '../parts/age';
import { ago, number } from '../text';

export function RulesPage(_: { params: Params }) {
  const rules = useAnswer<Rules>(address('rules'));
  const { answer } = rules;
  const quiet = { ...rules, failure: undefined };
  return (
    <>
      <Head title="Rules" view={answer?.view} at={rules.at} failure={rules.failure} reload={rules.reload} />
      {answer && (
        <>
          <Part title="Firing" loaded={quiet}>
            {answer.alarms.length === 0 ? <Nothing>No rule fires for an object that you may list.</Nothing> : <Firing of={answer.alarms} />}
          </Part>
          <Part title="All rules" loaded={quiet}>
            {answer.rules ? <RuleTable of={answer.rules} /> : <Nothing>There are no rules, or you may not list them (monitorrules).</Nothing>}
          </Part>
        </>
      )}
    </>
  );
}

function Firing({ of }: { of: Alarm[] }) {
  const now = useNow();
  return (
    <Table label="Firing" heads={['Severity', 'Rule', 'Object', 'Message', 'Since']}>
      {of.map((alarm) => (
        <tr key={`${alarm.rule} ${alarm.kind} ${alarm.namespace} ${alarm.name}`}>
          <td>
            <State of={alarm.severity ?? 'Warning'} />
          </td>
          <th scope="row">{alarm.rule}</th>
          <td>
            <ObjectLink of={alarm} />
          </td>
          <td>{alarm.message}</td>
          <td class="when">
            <time dateTime={alarm.since}>{ago(alarm.since, now)}</time>
          </td>
        </tr>
      ))}
    </Table>
  );
}

function RuleTable({ of }: { of: Rule[] }) {
  if (of.length === 0) return <Nothing>There are none.</Nothing>;
  return (
    <Table label="Rules" heads={['Rule', 'Severity', 'Looks for', 'Firing']}>
      {of.map((rule) => (
        <tr key={rule.name}>
          <th scope="row">{rule.name}</th>
          <td>{rule.severity && <State of={rule.severity} />}</td>
          <td>
            {rule.summary}
            {rule.problem && (
              <p class="notes">
                <State of="Failed" /> {rule.problem}
              </p>
            )}
          </td>
          <td class="number">{number(rule.firing)}</td>
        </tr>
      ))}
    </Table>
  );
}
