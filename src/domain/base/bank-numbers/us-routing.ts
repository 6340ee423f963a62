// Source: ABA routing number policy. The weights repeat over the nine digits.
const WEIGHTS = [3, 7, 1];

/** Whether a text is a US routing number: nine digits, weighted sum divisible by 10. */
export function isRoutingNumber(text: string): boolean {
  if (!/^\d{9}$/.test(text) || text === '000000000') return false;
  // 3(d1 + d4 + d7) + 7(d2 + d5 + d8) + (d3 + d6 + d9) mod 10 = 0
  const sum = [...text].reduce((total, digit, at) => total + Number(digit) * WEIGHTS[at % 3]!, 0);
  return sum % 10 === 0;
}
