"""Usage to dollars, line by line: planned before a run, billed after it, so that both can stand
side by side."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

from coordinator.prices import Prices


@dataclass(frozen=True)
class Usage:
    """What is paid for. Requests are counts; GB-seconds are memory in GB (1,024 MB) times billed
    seconds.

    `puts`, `gets`, `lists`: S3 requests (HEAD counts as a GET, DELETE is free); `invokes`: Lambda
    requests; `storage_gb_months`: S3 storage in GB (2**30 bytes) times months; `transfer_out_gb`:
    GB that leave AWS. Usages add up: `Usage() + a + b`.
    """

    puts: int = 0
    gets: int = 0
    lists: int = 0
    invokes: int = 0
    worker_gb_seconds: float = 0.0
    coordinator_gb_seconds: float = 0.0
    storage_gb_months: float = 0.0
    transfer_out_gb: float = 0.0
    decode_gb_seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Usage)))

    def to_json(self) -> dict[str, float]:
        """Plain JSON object of every field."""
        return asdict(self)


@dataclass(frozen=True)
class CostLine:
    """One line of the bill: `quantity` of `unit` at `price` dollars per unit."""

    item: str
    quantity: float
    unit: str
    price: float

    @property
    def dollars(self) -> float:
        """Quantity times price."""
        return self.quantity * self.price


@dataclass(frozen=True)
class Cost:
    """The bill: lines with anything to pay, and the prices they were computed with."""

    lines: tuple[CostLine, ...]
    prices: Prices

    @property
    def total(self) -> float:
        """Dollars."""
        return sum(line.dollars for line in self.lines)

    def to_json(self) -> dict[str, object]:
        """Plain JSON: total, currency, date and region of the prices, lines."""
        return {
            "total": self.total,
            "currency": "USD",
            "prices_date": self.prices.date,
            "region": self.prices.region,
            "architecture": self.prices.architecture,
            "lines": [{**asdict(line), "dollars": line.dollars} for line in self.lines],
        }


def cost(usage: Usage, prices: Prices) -> Cost:
    """The bill of a usage. Lines with nothing used are left out."""
    million, thousand = 1e6, 1e3
    put_price, get_price = prices.s3_thousand_puts / thousand, prices.s3_thousand_gets / thousand
    lines = (
        CostLine("worker time", usage.worker_gb_seconds, "GB-second", prices.lambda_gb_second),
        CostLine(
            "coordinator time", usage.coordinator_gb_seconds, "GB-second", prices.lambda_gb_second
        ),
        CostLine("decode time", usage.decode_gb_seconds, "GB-second", prices.lambda_gb_second),
        CostLine("invocations", usage.invokes, "request", prices.lambda_million_requests / million),
        CostLine("S3 PUT", usage.puts, "request", put_price),
        CostLine("S3 LIST", usage.lists, "request", put_price),
        CostLine("S3 GET", usage.gets, "request", get_price),
        CostLine("S3 storage", usage.storage_gb_months, "GB-month", prices.s3_gb_month),
        CostLine("transfer out", usage.transfer_out_gb, "GB", prices.transfer_out_gb),
    )
    return Cost(tuple(line for line in lines if line.quantity), prices)
