import { useSignal } from '@preact/signals';
import { control, issuesIn } from '../control.ts';
import { isRefusal, SentResult, useSending } from '../parts/sent-result.tsx';
import { Failure } from '../parts/states.tsx';
import { Issues } from '../policies/rule-form.tsx';
import { goTo } from '../router.tsx';
import { hrefOf } from '../routes.ts';
import {
  type AggregationDraft,
  choiceOf,
  countedMethods,
  firstAggregation,
  groupings,
  metrics,
  readAggregation,
  tokenOf,
  windows,
  withGroups,
  withToken,
} from './draft.ts';

/** The form of a new aggregation, and its JSON. A change of either one also changes the other. */
export function NewForm({ onSaved }: { readonly onSaved: () => void }) {
  const draft = useSignal(firstAggregation);
  const text = useSignal(JSON.stringify(firstAggregation, null, 2));
  const fault = useSignal('');
  const sending = useSending();
  const change = (changed: AggregationDraft): void => {
    draft.value = changed;
    text.value = JSON.stringify(changed, null, 2);
    fault.value = '';
  };
  const edit = (edited: string): void => {
    text.value = edited;
    try {
      draft.value = readAggregation(edited);
      fault.value = '';
    } catch (error) {
      fault.value = (error as Error).message;
    }
  };
  const create = async (submitted: Event): Promise<void> => {
    submitted.preventDefault();
    await sending.run(() =>
      control('sendRequest', { body: { operation: 'createAggregation', path: {}, body: draft.value } }),
    );
    const sent = sending.result.value;
    if (sent === undefined || isRefusal(sent.status)) return;
    onSaved();
    goTo(hrefOf('aggregations', [(sent.body as { id: string }).id]));
  };
  const { name, method, metric, window, group_by: groups = [] } = draft.value;
  return (
    <form onSubmit={create}>
      <div class="fields">
        <label class="wide">
          Name
          <input
            required
            maxLength={255}
            value={name}
            onInput={({ currentTarget }) => change({ ...draft.value, name: currentTarget.value })}
          />
        </label>
        <Choice
          label="Sum of"
          titles={metrics.map(([title]) => title)}
          value={choiceOf(metrics, metric)}
          choose={(index) => change(withToken({ ...draft.value, metric: metrics[index]![1] }, ''))}
        />
        {metric.field_source === 'ethereum_calldata' && (
          <label class="wide">
            Token contract
            <input
              spellcheck={false}
              placeholder="0x…, of any contract if empty"
              value={tokenOf(draft.value)}
              onInput={({ currentTarget }) => change(withToken(draft.value, currentTarget.value))}
            />
          </label>
        )}
        <Choice
          label="Within"
          titles={windows.map(([title]) => title)}
          value={windows.findIndex(([, seconds]) => seconds === window.seconds)}
          choose={(index) =>
            change({ ...draft.value, window: { type: 'rolling', seconds: windows[index]![1] } })
          }
        />
        <Choice
          label="Separate sums"
          titles={groupings.map(([title]) => title)}
          value={choiceOf<readonly object[]>(groupings, groups)}
          choose={(index) => change(withGroups(draft.value, groupings[index]![1]))}
        />
        <Choice
          label="Counted method"
          titles={countedMethods}
          value={countedMethods.indexOf(method)}
          choose={(index) => change({ ...draft.value, method: countedMethods[index]! })}
        />
      </div>
      <label class="stack">
        JSON
        <textarea
          rows={14}
          spellcheck={false}
          value={text}
          onInput={({ currentTarget }) => edit(currentTarget.value)}
        />
      </label>
      <Failure message={fault.value} />
      <p class="actions">
        <button type="submit" class="main" disabled={fault.value !== '' || sending.isRunning.value}>
          Create the aggregation
        </button>
      </p>
      <Issues issues={issuesIn(sending.result.value?.body)} />
      <SentResult sending={sending} />
    </form>
  );
}

/** A choice by index. The index -1 stands for a value in the JSON that is none of the choices. */
function Choice(props: {
  readonly label: string;
  readonly titles: readonly string[];
  readonly value: number;
  readonly choose: (index: number) => void;
}) {
  return (
    <label class="wide">
      {props.label}
      <select value={props.value} onChange={({ currentTarget }) => props.choose(Number(currentTarget.value))}>
        {props.value === -1 && <option value={-1}>as in the JSON</option>}
        {props.titles.map((title, index) => (
          <option key={title} value={index}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}
