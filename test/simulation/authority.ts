import type { Member } from './client.ts';

/*
 * Who may do what with the treasury, as clients can know it. A change takes effect at some moment between its request
 * and its answer, and one that is never answered may take effect or not. So each setting has several possible values at
 * a time, and what was done in an interval was right if some of them allows it, and had to succeed if all of them do.
 */

/** A quorum, as its last change said. */
export interface QuorumRule {
  readonly members: readonly Member[];
  readonly threshold: number;
}

/** What decides about the treasury. */
export interface Settings {
  readonly first: QuorumRule;
  readonly second: QuorumRule;
  /** The quorum that owns the treasury. */
  readonly owner: 'first' | 'second';
  /** Whether the policy applies to the treasury. */
  readonly guard: 'none' | 'policy';
  /** What the rules of the policy say about everything. The first quorum owns the policy. */
  readonly rules: 'ALLOW' | 'DENY';
}

/** What a change is about: it ends what was proposed about the same. */
export type Resource = 'treasury' | 'first' | 'second' | 'policy';

export type Setting = keyof Settings;

export const resourceOf = (setting: Setting): Resource => {
  if (setting === 'owner' || setting === 'guard') return 'treasury';
  return setting === 'rules' ? 'policy' : setting;
};

/** A value that a setting may have, or had. */
interface Entry {
  readonly setting: Setting;
  readonly value: Settings[Setting];
  readonly from: number;
  /** Since when the change is certainly over; undefined while it may still take effect. */
  overAt: number | undefined;
  /** Since when the value is certainly replaced. */
  until: number | undefined;
}

/** A change whose outcome its client awaits. */
export interface Change {
  /** When it may have begun to take effect. */
  readonly from: number;
  /** It has taken effect. */
  done(): void;
  /** It has not, and will not. */
  refused(): void;
  /** It has taken effect or not, and will not any more. */
  over(): void;
}

/** Signatures that may be used from one moment to another; until now if that has not come. */
export interface Use {
  readonly signers: ReadonlySet<Member>;
  readonly from: number;
  until: number | undefined;
}

export interface Authority {
  /** A moment, which is later than all before. */
  now(): number;
  begin<Name extends Setting>(setting: Name, value: Settings[Name]): Change;
  /** The values that a setting may have now. */
  possible<Name extends Setting>(setting: Name): Settings[Name][];
  /** Whether the signatures may have been enough for a resource. */
  mayChange(resource: Resource, use: Use): boolean;
  /** Whether they were certainly enough. */
  mustChange(resource: Resource, use: Use): boolean;
  /** Whether the signatures may have been enough to pay from the treasury, and no policy denied it. */
  mayPay(use: Use): boolean;
  /** Whether the policy may have denied everything. */
  mayBeDenied(use: Use): boolean;
}

/** Whether enough members have signed. Several signatures of one key are one. */
function isEnough({ members, threshold }: QuorumRule, signers: ReadonlySet<Member>): boolean {
  return members.filter((member) => signers.has(member)).length >= threshold;
}

export function makeAuthority(initial: Settings): Authority {
  let moment = 0;
  const now = (): number => {
    moment += 1;
    return moment;
  };
  const entries: Entry[] = (Object.keys(initial) as Setting[]).map((setting) => ({
    ...{ setting, value: initial[setting], from: 0 },
    ...{ overAt: 0, until: undefined },
  }));

  /** The values that a setting may have had at some moment from one to another. */
  function during<Name extends Setting>(
    setting: Name,
    { from, until = Number.POSITIVE_INFINITY }: Pick<Use, 'from' | 'until'>,
  ): Settings[Name][] {
    return entries
      .filter((each) => each.setting === setting && each.from <= until && (each.until ?? from) >= from)
      .map(({ value }) => value as Settings[Name]);
  }

  function rulesOf(resource: Resource, use: Pick<Use, 'from' | 'until'>): QuorumRule[] {
    const quorums =
      resource === 'treasury'
        ? during('owner', use)
        : resource === 'policy'
          ? (['first'] as const)
          : [resource];
    return quorums.flatMap((quorum) => during(quorum, use));
  }

  const mayChange = (resource: Resource, use: Use): boolean =>
    rulesOf(resource, use).some((rule) => isEnough(rule, use.signers));

  return {
    now,
    begin(setting, value) {
      const entry: Entry = { setting, value, from: now(), overAt: undefined, until: undefined };
      entries.push(entry);
      return {
        from: entry.from,
        done() {
          entry.overAt ??= now();
          // What was over before this began is replaced. What happened at the same time may have been later.
          for (const each of entries) {
            if (each === entry || each.setting !== setting || each.until !== undefined) continue;
            if (each.overAt !== undefined && each.overAt < entry.from) each.until = entry.overAt;
          }
        },
        refused() {
          entry.overAt ??= now();
          entry.until = entry.overAt;
        },
        over() {
          entry.overAt ??= now();
        },
      };
    },
    possible: (setting) => {
      const at = now();
      return during(setting, { from: at, until: at });
    },
    mayChange,
    mustChange: (resource, use) => rulesOf(resource, use).every((rule) => isEnough(rule, use.signers)),
    mayPay: (use) =>
      mayChange('treasury', use) &&
      (during('guard', use).includes('none') || during('rules', use).includes('ALLOW')),
    mayBeDenied: (use) => during('guard', use).includes('policy') && during('rules', use).includes('DENY'),
  };
}
