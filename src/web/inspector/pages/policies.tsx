import { useSignal } from '@preact/signals';
import { Plus, ScrollText } from 'lucide';
import type { Policy } from '../../../generated/schemas.ts';
import type { SandboxNamed, SandboxPolicy } from '../../../sandbox/generated/schemas.ts';
import { unitOfSums } from '../aggregations/draft.ts';
import { readApi } from '../api.ts';
import { control } from '../control.ts';
import { shortened } from '../names.ts';
import { Named } from '../parts/copy.tsx';
import { DetailPanel } from '../parts/detail-panel.tsx';
import { Fact } from '../parts/fact.tsx';
import { Icon } from '../parts/icon.tsx';
import { JsonTree } from '../parts/json-tree.tsx';
import { Chain, Label } from '../parts/label.tsx';
import { SearchableList } from '../parts/searchable-list.tsx';
import { Empty } from '../parts/states.tsx';
import { ExactTime } from '../parts/time.tsx';
import { everyPage, useLoaded } from '../parts/use-loaded.tsx';
import type { Column } from '../parts/virtual-table.tsx';
import { conditionText, type NamedParts, noNames } from '../policies/conditions.ts';
import { draftOf, firstDraft, type Rule } from '../policies/draft.ts';
import { Editor } from '../policies/editor.tsx';
import { Bench, Replay } from '../policies/judging.tsx';
import { hrefOf } from '../routes.ts';
import { allPages } from '../wallet-facts.ts';

const columns: readonly Column<SandboxPolicy>[] = [
  { title: 'Name', slot: 'lead', cell: ({ name }) => name },
  { title: 'Chain', width: 124, slot: 'status', cell: ({ chain_type: type }) => <Chain id={type} /> },
  {
    ...{ title: 'Rules', width: 330, isExtra: true },
    cell: ({ rules }) => (
      <span title={rules.map(({ name, method, action }) => `${action} ${method}: ${name}`).join('\n')}>
        {rules.slice(0, MAX_RULES).map(({ id, action, method }) => (
          <span key={id}>
            <Label tone={action === 'ALLOW' ? 'good' : 'bad'}>{method}</Label>{' '}
          </span>
        ))}
        {rules.length > MAX_RULES && <span class="quiet">and {rules.length - MAX_RULES} more</span>}
      </span>
    ),
  },
  {
    ...{ title: 'Used by', width: 190, slot: 'sub' },
    cell: ({ wallets, wallet_count: count }) =>
      count === 0 ? (
        <span class="quiet">no wallet</span>
      ) : (
        wallets.map(({ id, name }) => name ?? shortened(id)).join(', ')
      ),
  },
  {
    ...{ title: 'Owner', width: 72, isExtra: true, isDim: true },
    cell: ({ owner_id: owner }) => (owner === null ? 'app' : 'owned'),
  },
];

const MAX_RULES = 2;

/** The policies of all apps with the wallets that use them, and the open policy. */
export function Page() {
  const { value, error, reload } = useLoaded(
    (signal) => everyPage((query) => control('listSandboxPolicies', { query }, signal)),
    [],
  );
  return (
    <SearchableList
      page="policies"
      title="Policies"
      nouns={['policy', 'policies']}
      searchLabel="name, id, chain or wallet"
      rows={value.value}
      error={error.value}
      reload={reload}
      columns={columns}
      idOf={({ id }) => id}
      textsOf={({ id, name, chain_type, wallets }) => [
        ...[id, name, chain_type],
        ...wallets.map((wallet) => wallet.name),
      ]}
      actions={
        <a class="button main" href={hrefOf('policies', ['new'])}>
          <Icon of={Plus} /> New policy
        </a>
      }
      empty={<Empty icon={ScrollText} title="No policies yet" />}
      detail={(id, row, back) =>
        id === 'new' ? (
          <NewPolicy key="new" back={back} onSaved={reload} />
        ) : (
          <StoredPolicy key={id} id={id} wallets={row?.wallets ?? []} back={back} onSaved={reload} />
        )
      }
    />
  );
}

function NewPolicy({ back, onSaved }: { readonly back: string; readonly onSaved: () => void }) {
  const draft = useSignal(firstDraft);
  const names = useLoaded(readNames, []).value.value ?? noNames;
  return (
    <DetailPanel
      what="Policy"
      id="new"
      back={back}
      title="New policy"
      sub="not saved"
      tabs={[
        {
          title: 'Edit',
          content: () => <Editor draft={draft} names={names} stored={undefined} onSaved={onSaved} />,
        },
        { title: 'Test', content: () => <Bench id="new" draft={draft} /> },
        { title: 'Replay', content: () => <Replay draft={draft} /> },
      ]}
    />
  );
}

interface StoredProps {
  readonly id: string;
  readonly wallets: readonly SandboxNamed[];
  readonly back: string;
  readonly onSaved: () => void;
}

function StoredPolicy(props: StoredProps) {
  const { id, back } = props;
  const { value, error, reload } = useLoaded(
    (signal) => readApi('getPolicy', { path: { policy_id: id } }, signal),
    [id],
  );
  if (value.value === undefined) {
    return (
      <DetailPanel
        what="Policy"
        id={id}
        back={back}
        title="Policy"
        error={error.value}
        isLoading={error.value === ''}
        retry={reload}
      />
    );
  }
  return <PolicyPanel {...props} policy={value.value} reload={reload} />;
}

function PolicyPanel(props: StoredProps & { readonly policy: Policy; readonly reload: () => void }) {
  const { policy, id, wallets, back } = props;
  const draft = useSignal(draftOf(policy));
  const names = useLoaded(readNames, []).value.value ?? noNames;
  const saved = (): void => {
    props.onSaved();
    props.reload();
  };
  return (
    <DetailPanel
      what="Policy"
      id={id}
      back={back}
      title={policy.name}
      sub={<Chain id={policy.chain_type} />}
      tabs={[
        { title: 'Overview', content: () => <Overview policy={policy} wallets={wallets} names={names} /> },
        {
          title: 'Edit',
          content: () => <Editor draft={draft} names={names} stored={policy} onSaved={saved} />,
        },
        { title: 'Test', content: () => <Bench id={id} draft={draft} /> },
        { title: 'Replay', content: () => <Replay draft={draft} preferred={wallets[0]?.id} /> },
        { title: 'Raw', content: () => <JsonTree value={policy} label="Policy" /> },
      ]}
    />
  );
}

/** Reads the names of what conditions refer to by an id. */
async function readNames(signal: AbortSignal): Promise<NamedParts> {
  const [aggregations, sets] = await Promise.all([
    everyPage((query) => control('listSandboxAggregations', { query }, signal)),
    allPages((cursor) => readApi('listConditionSets', { query: { limit: 100, ...cursor } }, signal)),
  ]);
  return {
    sums: new Map(aggregations.map((each) => [each.id, { name: each.name, unit: unitOfSums(each) }])),
    sets: new Map(sets.map(({ id, name }) => [id, name])),
  };
}

interface OverviewProps {
  readonly policy: Policy;
  readonly wallets: readonly SandboxNamed[];
  readonly names: NamedParts;
}

function Overview({ policy, wallets, names }: OverviewProps) {
  const { owner_id: owner, rules, created_at: ms } = policy;
  return (
    <>
      <h3>Rules</h3>
      {rules.length === 0 && <p>No rules: everything is denied.</p>}
      <ul class="tree">
        {(rules as readonly Rule[]).map((rule, index) => (
          <li key={rule.id ?? index}>
            <Label tone={rule.action === 'ALLOW' ? 'good' : 'bad'}>{rule.action}</Label> {rule.name}{' '}
            <span class="method">{rule.method}</span>
            <ul>
              {rule.conditions.length === 0 && <li class="quiet">always</li>}
              {rule.conditions.map((condition, place) => (
                <li key={place}>
                  <span class="quiet">{condition.field_source}</span>{' '}
                  <code>{conditionText(condition, rule.conditions, names)}</code>
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
      <h3>Facts</h3>
      <dl>
        <Fact name="Used by">
          {wallets.length === 0
            ? 'no wallet'
            : wallets.map(({ id, name }) => (
                <span key={id} class="item">
                  <a href={hrefOf('wallets', [id])}>{name ?? shortened(id)}</a>
                </span>
              ))}
        </Fact>
        <Fact name="Owner">
          {owner === null ? (
            'none: the app secret is enough to change it'
          ) : (
            <Named id={owner} what="the key quorum's id" />
          )}
        </Fact>
        <Fact name="Created">
          <ExactTime ms={ms} />
        </Fact>
      </dl>
    </>
  );
}
