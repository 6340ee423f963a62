import { decimalText, fromRaw } from '../../../engine/assets/decimal.ts';
import type { SandboxPool, SandboxPoolTrade } from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { Failure } from './states.tsx';
import { useLoaded } from './use-loaded.tsx';

const WIDTH = 440;
const HEIGHT = 200;
const EDGE = 20;
const POINTS = 64;
const DIGITS = 7;

/** The reserves of a pool at one time: of the asset on the x axis, and of that on the y axis, in units. */
interface Moment {
  readonly name: string;
  readonly tone: 'accent' | 'info' | 'none';
  readonly x: number;
  readonly y: number;
}

interface CurveProps {
  readonly pool: SandboxPool;
  /** A trade in the pool, whose input is on the x axis. */
  readonly trade?: SandboxPoolTrade | undefined;
}

/** A pool's curve `x · y = k`, with the reserves now or before and after a trade, and the table behind it. */
export function PoolCurve({ pool, trade }: CurveProps) {
  const [inIndex, outIndex] = trade?.raw_in[0] === '0' ? ([1, 0] as const) : ([0, 1] as const);
  const [x, y] = [pool.assets[inIndex]!, pool.assets[outIndex]!];
  const nameOf = ({ symbol, token_address: token }: typeof x) => symbol ?? `${token.slice(0, 8)}…`;
  const label = `Pool of ${nameOf(x)} and ${nameOf(y)}`;
  const units = (raw: readonly string[], index: 0 | 1): number =>
    Number(decimalText(fromRaw(BigInt(raw[index]!), pool.assets[index]!.decimals)));
  const momentOf = (name: string, tone: Moment['tone'], raw: readonly string[]): Moment => ({
    ...{ name, tone, x: units(raw, inIndex), y: units(raw, outIndex) },
  });
  const now = pool.assets.map(({ raw_reserve: raw }) => raw);
  const moments =
    trade === undefined
      ? [momentOf('Now', 'info', now)]
      : [
          momentOf('Before', 'none', trade.raw_reserves_before),
          momentOf('After', 'accent', trade.raw_reserves_after),
          ...(now.join() === trade.raw_reserves_after.join() ? [] : [momentOf('Now', 'info', now)]),
        ];
  const latest = moments.at(-1)!;
  if (latest.x === 0 || latest.y === 0) return <p class="empty">{label}: empty, so it has no price.</p>;
  // A price above one is easier to read than its inverse.
  const isTurned = latest.y < latest.x;
  const [one, other] = isTurned ? [nameOf(y), nameOf(x)] : [nameOf(x), nameOf(y)];
  const priceText = (a: number, b: number): string => (isTurned ? shown(a / b) : shown(b / a));
  const [paid, received] =
    trade === undefined ? [0, 0] : [units(trade.raw_in, inIndex), units(trade.raw_out, outIndex)];
  return (
    <figure class="pool">
      <figcaption>
        <span>{label}</span>
        {moments.map(({ name, tone }) => (
          <span key={name} class={`key ${tone}`}>
            {name.toLowerCase()}
          </span>
        ))}
      </figcaption>
      <Curve moments={moments} label={label} axes={[nameOf(x), nameOf(y)]} />
      <table class="plain">
        <caption class="hidden">{label}</caption>
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col" class="end">{`${nameOf(x)} in it`}</th>
            <th scope="col" class="end">{`${nameOf(y)} in it`}</th>
            <th scope="col" class="end">{`${other} for 1 ${one}`}</th>
          </tr>
        </thead>
        <tbody>
          {moments.map((moment) => (
            <tr key={moment.name}>
              <th scope="row">{moment.name}</th>
              <td class="end amount">{shown(moment.x)}</td>
              <td class="end amount">{shown(moment.y)}</td>
              <td class="end amount">{priceText(moment.x, moment.y)}</td>
            </tr>
          ))}
          {trade !== undefined && (
            <tr>
              <th scope="row">The swap</th>
              <td class="end amount">+{shown(paid)}</td>
              <td class="end amount">−{shown(received)}</td>
              <td class="end amount">{priceText(paid, received)}</td>
            </tr>
          )}
        </tbody>
      </table>
      {trade !== undefined && (
        <p class="quiet small">
          {tradeText({ before: moments[0]!, after: moments[1]!, paid, received }, pool.fee_bps)}
        </p>
      )}
    </figure>
  );
}

interface Trade {
  readonly before: Moment;
  readonly after: Moment;
  readonly paid: number;
  readonly received: number;
}

/** Says how far a swap has moved the price, and how far the swap's own price was below the previous price. */
function tradeText({ before, after, paid, received }: Trade, feeBps: number): string {
  const price = before.y / before.x;
  const moved = 1 - after.y / after.x / price;
  const lost = 1 - received / paid / price;
  return [
    `The swap moved the price by ${percentText(moved)}.`,
    `It got ${percentText(lost)} less than at the price before it:`,
    `${percentText(feeBps / 10_000)} is the fee, which stays in the pool, and the rest comes from the move.`,
  ].join(' ');
}

interface DrawnProps {
  readonly moments: readonly Moment[];
  readonly label: string;
  readonly axes: readonly [string, string];
}

function Curve({ moments, label, axes }: DrawnProps) {
  const { x: latestX, y: latestY } = moments.at(-1)!;
  const product = latestX * latestY;
  const [least, most] = [Math.min(...moments.map(({ x }) => x)), Math.max(...moments.map(({ x }) => x))];
  // Both axes begin at 0, so that distances on them are true.
  const [first, last] = [least / 2, most * 2];
  const across = (x: number): number => EDGE + (x / last) * (WIDTH - 2 * EDGE);
  const up = (y: number): number => HEIGHT - EDGE - (y / (product / first)) * (HEIGHT - 2 * EDGE);
  const line = Array.from({ length: POINTS + 1 }, (_, index) => {
    const x = first * (last / first) ** (index / POINTS);
    return `${across(x).toFixed(1)} ${up(product / x).toFixed(1)}`;
  });
  const [left, bottom] = [across(0), up(0)];
  return (
    <svg class="chart curve" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${label}: its curve`}>
      <path class="axis" d={`M${left} ${EDGE / 2} V${bottom} H${WIDTH - EDGE / 2}`} />
      <path class="drawn" d={`M${line.join(' L')}`} />
      {moments.map(({ name, tone, x, y }, index) => (
        <g key={name}>
          <path class="axis" d={`M${left} ${up(y)} H${across(x)} V${bottom}`} stroke-dasharray="3 3" />
          {/* Points at the same place stay visible, because each is smaller than the one before it. */}
          <circle class={tone} cx={across(x)} cy={up(y)} r={7 - 2 * index} />
        </g>
      ))}
      <text x={WIDTH - EDGE / 2} y={HEIGHT - 4} text-anchor="end">{`${axes[0]} in the pool →`}</text>
      <text x={left + 6} y={EDGE / 2 + 6}>{`↑ ${axes[1]} in the pool`}</text>
    </svg>
  );
}

/** The pools in which a transaction has traded. Other transactions show nothing. */
export function PoolTrades({ caip2, hash }: { readonly caip2: string; readonly hash: string }) {
  const { value, error, reload } = useLoaded(
    (signal) => control('listPools', { query: { chain: caip2, transaction_hash: hash } }, signal),
    [caip2, hash],
  );
  const pools = value.value?.data ?? [];
  return (
    <>
      <Failure message={error.value} retry={reload} />
      {pools.length > 0 && <h3>{pools.length === 1 ? 'Pool' : 'Pools'}</h3>}
      {pools.flatMap((pool) =>
        pool.trades.map((trade, index) => (
          <PoolCurve key={`${pool.address} ${index}`} pool={pool} trade={trade} />
        )),
      )}
    </>
  );
}

/** Formats a number of units with at most seven significant digits, such as `1,493.269`. */
function shown(value: number): string {
  return value.toLocaleString('en', { maximumSignificantDigits: DIGITS });
}

function percentText(share: number): string {
  return `${(share * 100).toLocaleString('en', { maximumSignificantDigits: 3 })} %`;
}
