import { Plus, Sigma } from 'lucide';
import type { AmountUnit } from '../../../engine/assets/amount-units.ts';
import type { SandboxAggregation, SandboxAggregationSum } from '../../../sandbox/generated/schemas.ts';
import { lowestLimit, sumText, unitOfSums, usedShare } from '../aggregations/draft.ts';
import { NewForm } from '../aggregations/form.tsx';
import { control } from '../control.ts';
import { shortened } from '../names.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { Copy, Named } from '../parts/copy.tsx';
import { DetailPanel } from '../parts/detail-panel.tsx';
import { Fact } from '../parts/fact.tsx';
import { Icon } from '../parts/icon.tsx';
import { CodeBlock, JsonTree } from '../parts/json-tree.tsx';
import { Label } from '../parts/label.tsx';
import { SearchableList } from '../parts/searchable-list.tsx';
import { isRefusal, SentResult, SignerChoice, useSending, useSigners } from '../parts/sent-result.tsx';
import { Empty } from '../parts/states.tsx';
import { Age, ExactTime } from '../parts/time.tsx';
import { everyPage, useLoaded, useReload } from '../parts/use-loaded.tsx';
import type { Column } from '../parts/virtual-table.tsx';
import { type Condition, conditionText, operatorText } from '../policies/conditions.ts';
import { interruption, requests } from '../requests/request-feed.tsx';
import { goTo } from '../router.tsx';
import { hrefOf } from '../routes.ts';
import { durationText } from '../texts.ts';

/** The address of the form of a new aggregation. */
const NEW = 'new';
const MS_PER_SECOND = 1000;

const columns: readonly Column<SandboxAggregation>[] = [
  { title: 'Name', slot: 'lead', cell: ({ name }) => name },
  {
    ...{ title: 'Sum of', width: 120, slot: 'sub', isDim: true, isExtra: true },
    cell: ({ metric }) => String(metric.field),
  },
  {
    ...{ title: 'Window', width: 72, isExtra: true },
    cell: ({ window_seconds: seconds }) => durationText(seconds * MS_PER_SECOND),
  },
  { title: 'Largest sum', width: 210, slot: 'status', cell: (each) => <Largest of={each} /> },
  {
    ...{ title: 'Limited by', width: 170, isExtra: true, isDim: true },
    cell: ({ limits }) =>
      limits.length === 0
        ? 'no policy'
        : [...new Set(limits.map(({ policy }) => policyText(policy)))].join(', '),
  },
  {
    ...{ title: 'Created', width: 84, align: 'end', isDim: true, slot: 'age', isExtra: true },
    cell: ({ created_at_ms: ms }) => <Age ms={ms} />,
  },
];

function policyText({ id, name }: { readonly id: string; readonly name: string | null }): string {
  return name || shortened(id);
}

/** Describes the value that is summed, such as `value of eth_signTransaction`. */
function countedText({ metric, method }: Pick<SandboxAggregation, 'metric' | 'method'>): string {
  return `${String(metric.field)} of ${method}`;
}

function Largest({ of: aggregation }: { readonly of: SandboxAggregation }) {
  const [first] = aggregation.sums;
  if (first === undefined) return <span class="quiet">nothing yet</span>;
  return <Meter sum={first.sum} limit={lowestLimit(aggregation)} unit={unitOfSums(aggregation)} />;
}

interface MeterProps {
  readonly sum: string;
  readonly limit: string | undefined;
  readonly unit: AmountUnit | undefined;
}

/** A sum, and which part of its limit it uses. */
function Meter({ sum, limit, unit }: MeterProps) {
  const share = limit === undefined ? undefined : usedShare(sum, limit);
  const tone = share === undefined ? '' : share >= 1 ? 'bad' : share >= 0.8 ? 'warn' : 'good';
  return (
    <span class="meter">
      {share !== undefined && (
        <i aria-hidden="true">
          <b class={tone} style={{ width: `${Math.round(share * 100)}%` }} />
        </i>
      )}
      <span>
        <span class="amount">{sumText(sum, unit)}</span>
        {limit !== undefined && <span class="quiet"> of {sumText(limit, unit)}</span>}
      </span>
    </span>
  );
}

/** The aggregations of all apps with their current sums, and the open one. */
export function Page() {
  const { value, error, isLoading, reload } = useLoaded(
    (signal) => everyPage((query) => control('listSandboxAggregations', { query }, signal)),
    [],
  );
  // Every signature may change a sum.
  useReload({ isLoading, reload }, requests.value);
  return (
    <SearchableList
      page="aggregations"
      title="Aggregations"
      nouns={['aggregation', 'aggregations']}
      searchLabel="name, id, policy or wallet"
      rows={value.value}
      error={error.value || interruption.value}
      reload={reload}
      columns={columns}
      idOf={({ id }) => id}
      textsOf={({ id, name, limits, sums }) => [
        ...[id, name],
        ...limits.map(({ policy }) => policy.name),
        ...sums.map(({ wallet }) => wallet.name),
      ]}
      actions={
        <a class="button main" href={hrefOf('aggregations', [NEW])}>
          <Icon of={Plus} /> New
        </a>
      }
      empty={
        <Empty icon={Sigma} title="No aggregations yet">
          <span>
            An aggregation sums what wallets sign within a window, such as a day. A policy limits the sum.
          </span>
          <a class="button" href={hrefOf('aggregations', [NEW])}>
            Create one
          </a>
        </Empty>
      }
      detail={(id, row, back) =>
        id === NEW ? (
          <DetailPanel
            what="Aggregation"
            id="new"
            back={back}
            title="New aggregation"
            sub="It counts what is signed from its creation on."
            tabs={[{ title: 'Definition', content: () => <NewForm onSaved={reload} /> }]}
          />
        ) : (
          <Detail key={id} id={id} of={row} back={back} onDeleted={reload} />
        )
      }
    />
  );
}

interface DetailProps {
  readonly id: string;
  readonly of: SandboxAggregation | undefined;
  readonly back: string;
  readonly onDeleted: () => void;
}

function Detail({ id, of: aggregation, back, onDeleted }: DetailProps) {
  if (aggregation === undefined) {
    return <DetailPanel what="Aggregation" id={id} back={back} title="Aggregation" isLoading />;
  }
  return (
    <DetailPanel
      what="Aggregation"
      id={id}
      back={back}
      title={aggregation.name}
      sub={`${countedText(aggregation)}, the last ${durationText(aggregation.window_seconds * MS_PER_SECOND)}`}
      tabs={[
        { title: 'Sums', content: () => <Sums of={aggregation} /> },
        { title: 'Limits', content: () => <Limits of={aggregation} /> },
        { title: 'Definition', content: () => <Definition of={aggregation} onDeleted={onDeleted} /> },
        { title: 'Raw', content: () => <JsonTree value={aggregation} label="Aggregation" /> },
      ]}
    />
  );
}

function Sums({ of: aggregation }: { readonly of: SandboxAggregation }) {
  const { sums, sum_count: count, group_by: groups } = aggregation;
  const limit = lowestLimit(aggregation);
  if (sums.length === 0) {
    return <p class="empty">Nothing that counts was signed within the window.</p>;
  }
  return (
    <>
      <div class="table">
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Wallet</th>
              {groups.map(({ field }) => (
                <th scope="col" key={String(field)}>
                  {String(field)}
                </th>
              ))}
              <th scope="col">Sum</th>
              <th scope="col" class="end">
                Requests
              </th>
            </tr>
          </thead>
          <tbody>
            {sums.map((each, index) => (
              <tr key={index}>
                <td>
                  <a href={hrefOf('wallets', [each.wallet.id])}>
                    {each.wallet.name ?? shortened(each.wallet.id)}
                  </a>
                </td>
                {groups.map((_, place) => (
                  <td key={place}>
                    <GroupValue of={each} place={place} />
                  </td>
                ))}
                <td>
                  <Meter sum={each.sum} limit={limit} unit={unitOfSums(aggregation)} />
                </td>
                <td class="end">{each.request_count}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {count > sums.length && (
        <p class="quiet small">
          The largest {sums.length} of {count} sums.
        </p>
      )}
    </>
  );
}

function GroupValue({
  of: { group },
  place,
}: {
  readonly of: SandboxAggregationSum;
  readonly place: number;
}) {
  if (group === null) return <span class="quiet">too long to be stored</span>;
  const values = group[place] ?? [];
  if (values.length === 0) return <span class="quiet">none</span>;
  return (
    <>
      {values.map((value) => (
        <Named key={value} id={value} what="the value" />
      ))}
    </>
  );
}

/** The conditions of policies that compare the sums, and the condition that a further policy would have. */
function Limits({ of: aggregation }: { readonly of: SandboxAggregation }) {
  const { id, limits } = aggregation;
  const unit = unitOfSums(aggregation);
  const example = {
    ...{ field_source: 'reference', field: `aggregation.${id}`, operator: 'lte' },
    value: unit === undefined ? '1000000' : String(10n ** BigInt(unit.decimals)),
  };
  return (
    <>
      {limits.length === 0 && <p class="empty">No policy compares the sums.</p>}
      <ul class="lines">
        {limits.map(({ policy, rule_name: rule, action, operator, values }, index) => (
          <li key={index}>
            <Label tone={action === 'ALLOW' ? 'good' : 'bad'}>{action}</Label>{' '}
            <a href={hrefOf('policies', [policy.id])}>{policyText(policy)}</a>{' '}
            <span class="quiet">rule {rule}</span>
            <p>
              The sum {operatorText(operator)} {values.map((value) => sumText(value, unit)).join(', ')}.
            </p>
          </li>
        ))}
      </ul>
      <h3>Limit the sum</h3>
      <p>
        Give an ALLOW rule of a <a href={hrefOf('policies')}>policy</a> this condition. The sum includes the
        request that is judged. <Copy text={JSON.stringify(example)} what="the condition" />
      </p>
      <CodeBlock value={example} label="Condition" />
    </>
  );
}

interface DefinitionProps {
  readonly of: SandboxAggregation;
  readonly onDeleted: () => void;
}

function Definition({ of: aggregation, onDeleted }: DefinitionProps) {
  const { id, name, method, metric, group_by: groups, owner, created_at_ms: ms } = aggregation;
  const conditions = aggregation.conditions as object[] as Condition[];
  const chosen = useSigners(owner);
  const sending = useSending();
  const remove = async (): Promise<void> => {
    await sending.run(() =>
      control('sendRequest', {
        body: { operation: 'deleteAggregation', path: { aggregation_id: id }, sign_as: [...chosen.value] },
      }),
    );
    const sent = sending.result.value;
    if (sent === undefined || isRefusal(sent.status)) return;
    onDeleted();
    goTo(hrefOf('aggregations'));
  };
  return (
    <>
      <dl>
        <Fact name="Counts">
          requests with <code>{method}</code>
        </Fact>
        <Fact name="Sums">
          <span class="quiet">{String(metric.field_source)}</span> <code>{String(metric.field)}</code>
        </Fact>
        <Fact name="If">
          {conditions.length === 0 && 'always'}
          {conditions.map((condition, index) => (
            <span key={index} class="item">
              <span class="quiet">{condition.field_source}</span>{' '}
              <code>{conditionText(condition, conditions)}</code>
            </span>
          ))}
        </Fact>
        <Fact name="Separate sums">
          for each wallet
          {groups.map(({ field_source: source, field }) => (
            <span key={String(field)} class="item">
              and <span class="quiet">{String(source)}</span> <code>{String(field)}</code>
            </span>
          ))}
        </Fact>
        <Fact name="Owner">
          {owner === null ? (
            'none: the app secret is enough to delete it'
          ) : (
            <Named
              id={owner.key_quorum_id}
              what="the key quorum's id"
              href={hrefOf('quorums', [owner.key_quorum_id])}
            >
              {owner.display_name ?? undefined}
            </Named>
          )}
        </Fact>
        <Fact name="Created">
          <ExactTime ms={ms} />
        </Fact>
      </dl>
      <p class="quiet small">
        A definition never changes. After a deletion, the conditions that name the aggregation are false.
      </p>
      {owner !== null && <SignerChoice chosen={chosen} />}
      <p class="actions">
        <ConfirmButton question={`Delete ${name}?`} onConfirm={() => void remove()}>
          Delete
        </ConfirmButton>
      </p>
      <SentResult sending={sending} />
    </>
  );
}
