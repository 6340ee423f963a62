import { type Signal, useSignal } from '@preact/signals';
import { Bug } from 'lucide';
import { useEffect } from 'preact/hooks';
import type { SandboxFault, SandboxFaultEffect } from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import {
  type DraftField,
  effectGroups,
  effectText,
  type FaultDraft,
  faultRequest,
  fieldTitles,
  formFields,
  hitsText,
  selectionText,
} from '../fault-draft.ts';
import { Prose } from '../parts/prose.tsx';
import { Empty, Failure } from '../parts/states.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';

/** The interval at which the numbers of hits are read again. */
const READ_MS = 2000;

/** The fault rules of the sandbox: which requests fail on purpose, and how many times they have failed. */
export function Page() {
  const { value, error, reload } = useLoaded((signal) => control('listFaults', {}, signal), []);
  const note = useSignal('');
  const refusal = useSignal('');
  useEffect(() => {
    const timer = setInterval(reload, READ_MS);
    return () => clearInterval(timer);
  }, []);
  const change = async (run: () => Promise<string>): Promise<void> => {
    try {
      refusal.value = '';
      note.value = await run();
      reload();
    } catch (cause) {
      note.value = '';
      refusal.value = (cause as Error).message;
    }
  };
  const faults = value.value?.data;
  return (
    <div class="page">
      <div class="title">
        <h1>Faults</h1>
      </div>
      <p class="quiet">
        Rules make requests, transactions and webhook deliveries fail on purpose. They are tried in this
        order, and at most one applies.
      </p>
      <AddFault change={change} />
      <p role="status">{note.value}</p>
      {refusal.value !== '' && (
        <div role="alert" class="bad">
          <Prose text={refusal.value} />
        </div>
      )}
      <Failure message={error.value} retry={reload} />
      {faults?.length === 0 && (
        <Empty icon={Bug} title="No rules">
          <span>Nothing fails on purpose. Add a rule above.</span>
        </Empty>
      )}
      {faults !== undefined && faults.length > 0 && (
        <>
          <Rules faults={faults} change={change} />
          <div class="actions">
            <button
              type="button"
              onClick={() =>
                change(async () => {
                  const { removed } = await control('clearFaults', {});
                  return `${removed} removed`;
                })
              }
            >
              Remove all
            </button>
          </div>
        </>
      )}
    </div>
  );
}

/** Runs a change, shows its message, and reads the rules again. */
type Change = (run: () => Promise<string>) => Promise<void>;

interface RulesProps {
  readonly faults: readonly SandboxFault[];
  readonly change: Change;
}

function Rules({ faults, change }: RulesProps) {
  const remove = (id: string) =>
    change(async () => {
      await control('removeFault', { path: { fault_id: id } });
      return `${id} removed`;
    });
  return (
    <table class="plain" aria-label="Rules">
      <thead>
        <tr>
          <th scope="col">Effect</th>
          <th scope="col">Applies to</th>
          <th scope="col">Hits</th>
          <th scope="col">Change</th>
        </tr>
      </thead>
      <tbody>
        {faults.map((fault) => (
          <tr key={fault.id}>
            <td class="whole">{effectText(fault)}</td>
            <td>{selectionText(fault)}</td>
            <td class="whole">{hitsText(fault)}</td>
            <td>
              <button type="button" aria-label={`Remove ${fault.id}`} onClick={() => remove(fault.id)}>
                Remove
              </button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function AddFault({ change }: Pick<RulesProps, 'change'>) {
  const effect = useSignal<SandboxFaultEffect>('error');
  const draft = useSignal<FaultDraft>({ code: 'unavailable' });
  const add = (submitted: Event): void => {
    submitted.preventDefault();
    void change(async () => {
      const { id } = await control('addFault', { body: faultRequest(effect.value, draft.value) });
      return `${id} added`;
    });
  };
  return (
    <form class="fields card" aria-label="Add a rule" onSubmit={add}>
      <label>
        Effect
        <select
          value={effect}
          onChange={({ currentTarget }) => {
            effect.value = currentTarget.value as SandboxFaultEffect;
          }}
        >
          {effectGroups.map(({ title, effects }) => (
            <optgroup label={title} key={title}>
              {effects.map((each) => (
                <option key={each} value={each}>
                  {each.replaceAll('_', ' ')}
                </option>
              ))}
            </optgroup>
          ))}
        </select>
      </label>
      {formFields(effect.value).map((field) => (
        <Field key={field} field={field} draft={draft} />
      ))}
      <button type="submit" class="main">
        Add
      </button>
    </form>
  );
}

function Field({ field, draft }: { readonly field: DraftField; readonly draft: Signal<FaultDraft> }) {
  const set = (text: string): void => {
    draft.value = { ...draft.value, [field]: text };
  };
  if (field === 'is_undocumented') {
    return (
      <label>
        {fieldTitles[field]}
        <select value={draft.value[field] ?? ''} onChange={({ currentTarget }) => set(currentTarget.value)}>
          <option value="">no</option>
          <option value="true">yes</option>
        </select>
      </label>
    );
  }
  return (
    <label>
      {fieldTitles[field]}
      <input
        value={draft.value[field] ?? ''}
        spellcheck={false}
        onInput={({ currentTarget }) => set(currentTarget.value)}
      />
    </label>
  );
}
