import { useSignal } from '@preact/signals';
import { ListFilter, Plus } from 'lucide';
import { useRef } from 'preact/hooks';
import type { ConditionSet, ConditionSetItem } from '../../../generated/schemas.ts';
import { readApi } from '../api.ts';
import { control } from '../control.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { Named } from '../parts/copy.tsx';
import { DetailPanel } from '../parts/detail-panel.tsx';
import { Icon } from '../parts/icon.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { SearchableList } from '../parts/searchable-list.tsx';
import { isRefusal, SentResult, SignerChoice, useSending } from '../parts/sent-result.tsx';
import { Empty, Skeleton } from '../parts/states.tsx';
import { Age } from '../parts/time.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import type { Column } from '../parts/virtual-table.tsx';
import { goTo } from '../router.tsx';
import { hrefOf } from '../routes.ts';
import { linesIn, valueRequests } from '../texts.ts';
import { allPages } from '../wallet-facts.ts';

/** The address of the form of a new condition set. */
const NEW = 'new';

const columns: readonly Column<ConditionSet>[] = [
  { title: 'Name', slot: 'lead', cell: ({ name }) => name },
  { title: 'Id', width: 200, slot: 'sub', cell: ({ id }) => <Named id={id} what="the condition set's id" /> },
  {
    ...{ title: 'Created', width: 90, align: 'end', isDim: true, slot: 'age' },
    cell: ({ created_at: ms }) => <Age ms={ms} />,
  },
];

/** The condition sets of the sandbox's app, with their values. */
export function Page() {
  const { value, error, reload } = useLoaded(
    (signal) =>
      allPages((cursor) => readApi('listConditionSets', { query: { limit: 100, ...cursor } }, signal)),
    [],
  );
  return (
    <SearchableList
      page="sets"
      title="Condition sets"
      nouns={['condition set', 'condition sets']}
      searchLabel="name or id"
      rows={value.value}
      error={error.value}
      reload={reload}
      columns={columns}
      idOf={({ id }) => id}
      textsOf={({ id, name }) => [id, name]}
      actions={
        <a class="button main" href={hrefOf('sets', [NEW])}>
          <Icon of={Plus} /> New
        </a>
      }
      empty={
        <Empty icon={ListFilter} title="No condition sets yet">
          <span>A condition set is a list of values, such as allowed receivers, that policies refer to.</span>
          <a class="button" href={hrefOf('sets', [NEW])}>
            Create one
          </a>
        </Empty>
      }
      detail={(id, set, back) =>
        id === NEW ? (
          <DetailPanel
            what="Condition set"
            id="new"
            back={back}
            title="New condition set"
            sub="Name it, and give its values, one a line."
            tabs={[
              { title: 'Values', content: () => <SetForm set={undefined} items={[]} onSaved={reload} /> },
            ]}
          />
        ) : (
          <SetDetail key={id} id={id} set={set} back={back} onSaved={reload} />
        )
      }
    />
  );
}

interface DetailProps {
  readonly id: string;
  readonly set: ConditionSet | undefined;
  readonly back: string;
  readonly onSaved: () => void;
}

function SetDetail({ id, set, back, onSaved }: DetailProps) {
  const path = { condition_set_id: id };
  const items = useLoaded(
    (signal) =>
      allPages(async (cursor) => {
        const query = { limit: 100, ...cursor };
        const { items: data, next_cursor } = await readApi('listConditionSetItems', { path, query }, signal);
        return { data, next_cursor };
      }),
    [id],
  );
  if (set === undefined) {
    return <DetailPanel what="Condition set" id={id} back={back} title="Condition set" isLoading />;
  }
  const values = items.value.value;
  const saved = (): void => {
    items.reload();
    onSaved();
  };
  return (
    <DetailPanel
      what="Condition set"
      id={id}
      back={back}
      title={set.name}
      error={items.error.value}
      tabs={[
        {
          title: 'Values',
          content: () =>
            values === undefined ? (
              <Skeleton lines={4} />
            ) : (
              <SetForm key={id} set={set} items={values} onSaved={saved} />
            ),
        },
        { title: 'Raw', content: () => <JsonTree value={{ ...set, items: values }} label="Condition set" /> },
      ]}
    />
  );
}

interface FormProps {
  /** The stored condition set. Undefined for a new one. */
  readonly set: ConditionSet | undefined;
  readonly items: readonly ConditionSetItem[];
  readonly onSaved: () => void;
}

/** The form of a condition set: its name, and its values, one a line. */
function SetForm({ set, items, onSaved }: FormProps) {
  const name = useSignal(set?.name ?? '');
  const text = useSignal(items.map(({ value }) => value).join('\n'));
  /**
   * What the server has stored. If it creates the set but refuses the values, the id stays here, so that the next
   * attempt does not create a second set.
   */
  const stored = useRef({ id: set?.id, name: set?.name, text: text.value });
  const signers = useSignal<readonly ('alice' | 'bob' | 'carol')[]>([]);
  const sending = useSending();
  const values = linesIn(text.value);
  const send = async (
    operation: string,
    path: object,
    body?: object,
  ): Promise<{ id?: string } | undefined> => {
    await sending.run(() =>
      control('sendRequest', {
        body: {
          ...{ operation, path: path as Record<string, string>, sign_as: [...signers.value] },
          ...(body === undefined ? {} : { body }),
        },
      }),
    );
    const result = sending.result.value;
    return result === undefined || isRefusal(result.status)
      ? undefined
      : ((result.body ?? {}) as { id?: string });
  };
  const save = async (submitted: Event): Promise<void> => {
    submitted.preventDefault();
    const named = { name: name.value.trim() };
    const known = stored.current;
    if (known.id === undefined) {
      known.id = (await send('createConditionSet', {}, named))?.id;
      if (known.id === undefined) return;
      known.name = named.name;
    }
    const path = { condition_set_id: known.id };
    if (named.name !== known.name) {
      if ((await send('updateConditionSet', path, named)) === undefined) return;
      known.name = named.name;
    }
    // A change of the name alone leaves the values as they are.
    if (text.value !== known.text) {
      for (const { operation, body } of valueRequests(values)) {
        if ((await send(operation, path, body)) === undefined) return;
      }
      if (values.length > 0) known.text = text.value;
    }
    onSaved();
    if (set === undefined) goTo(hrefOf('sets', [known.id]));
  };
  const remove = async (): Promise<void> => {
    if ((await send('deleteConditionSet', { condition_set_id: set!.id })) === undefined) return;
    onSaved();
    goTo(hrefOf('sets'));
  };
  return (
    <form onSubmit={save}>
      <div class="fields">
        <label class="wide">
          Name
          <input
            required
            maxLength={100}
            value={name}
            onInput={({ currentTarget }) => (name.value = currentTarget.value)}
          />
        </label>
      </div>
      <label class="stack">
        Values, one a line
        <textarea
          rows={8}
          spellcheck={false}
          value={text}
          onInput={({ currentTarget }) => (text.value = currentTarget.value)}
        />
      </label>
      <p class="quiet small" role="status">
        {values.length} {values.length === 1 ? 'value' : 'values'}.{' '}
        {set !== undefined && values.length === 0 && 'A set keeps its values until others replace them.'}{' '}
        Policies name the set by its id with <code>in_condition_set</code>.
      </p>
      {set !== undefined && set.owner_id !== null && <SignerChoice chosen={signers} />}
      <p class="actions">
        <button type="submit" class="main" disabled={sending.isRunning.value}>
          {set === undefined ? 'Create the condition set' : 'Save'}
        </button>
        {set !== undefined && (
          <ConfirmButton question={`Delete ${set.name}?`} onConfirm={() => void remove()}>
            Delete
          </ConfirmButton>
        )}
      </p>
      <SentResult sending={sending} />
    </form>
  );
}
