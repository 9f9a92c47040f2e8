// Which changes are wanted. The filter stands in the address, so a link to a page has it.

import type { Kind, Params } from '../api';
import { go, to } from '../route';

const types = ['Created', 'Updated', 'Deleted', 'Baseline', 'Gap'];
const spans = { '': 'All that is kept', '15m': 'Last 15 minutes', '1h': 'Last hour', '24h': 'Last day', '168h': 'Last week' };

export function Filters({ params, kinds }: { params: Params; kinds: Kind[] }) {
  const chosen = params.type?.split(',') ?? types;
  const submit = (event: Event) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string) => String(data.get(name) ?? '').trim();
    const type = data.getAll('type').map(String);
    go(
      to('timeline', {
        kind: text('kind'),
        namespace: text('namespace'),
        name: text('name'),
        actor: text('actor'),
        path: text('path'),
        since: text('since'),
        type: type.length === types.length ? '' : type.join(','),
      }),
    );
  };
  return (
    <form class="filters" aria-label="Filter" key={JSON.stringify(params)} onSubmit={submit}>
      <label>
        Kind
        <input name="kind" list="kinds" value={params.kind ?? ''} placeholder="all" spellcheck={false} autocomplete="off" />
      </label>
      <datalist id="kinds">
        {kinds.map((kind) => (
          <option key={kind.name} value={kind.name} />
        ))}
      </datalist>
      <Text name="namespace" word="Namespace" params={params} hint="all" />
      <Text name="name" word="Name" params={params} hint="all" />
      <Text name="actor" word="By" params={params} hint="anybody" />
      <Text name="path" word="Field" params={params} hint=".spec.replicas" />
      <label>
        Time
        <select name="since" value={params.since ?? ''}>
          {Object.entries({ ...spans, ...(params.since && !(params.since in spans) ? { [params.since]: `Since ${params.since}` } : {}) }).map(([since, word]) => (
            <option key={since} value={since} selected={since === (params.since ?? '')}>
              {word}
            </option>
          ))}
        </select>
      </label>
      <fieldset>
        <legend>What happened</legend>
        {types.map((type) => (
          <label key={type}>
            <input type="checkbox" name="type" value={type} checked={chosen.includes(type)} /> {type}
          </label>
        ))}
      </fieldset>
      <div class="buttons">
        <button type="submit" class="main">
          Show
        </button>
        <a href={to('timeline')}>Clear</a>
      </div>
    </form>
  );
}

function Text({ name, word, params, hint }: { name: string; word: string; params: Params; hint: string }) {
  return (
    <label>
      {word}
      <input name={name} value={params[name] ?? ''} placeholder={hint} spellcheck={false} autocomplete="off" autocapitalize="off" />
    </label>
  );
}
